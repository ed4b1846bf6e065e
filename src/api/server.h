// What `bezel serve` answers: the web app, model files for it, and OpenAI's chat completions. Native only.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "api/access.h"
#include "api/catalog.h"
#include "api/http_server.h"
#include "api/model_host.h"

namespace bezel {

class Server {
 public:
  // `app` is the folder of the web app; empty: there is none. `go_on` is false when the program ends.
  Server(AccessRules access, Catalog catalog, std::string app, std::vector<std::unique_ptr<ModelHost>> models,
         std::function<bool()> go_on)
      : access_(std::move(access)),
        catalog_(std::move(catalog)),
        app_(std::move(app)),
        models_(std::move(models)),
        go_on_(std::move(go_on)) {}

  // From any thread.
  void handle(const HttpRequest& request, HttpReply& reply);

  // Loads all models, one after the other. One that fails is tried again when it is asked for.
  void prepare_models(const std::function<void(const Error&)>& report);

 private:
  void handle_api(const HttpRequest& request, HttpReply& reply);
  void handle_app(const HttpRequest& request, HttpReply& reply);
  void list_models(HttpReply& reply) const;
  void send_model(const HttpRequest& request, HttpReply& reply) const;
  void complete(const HttpRequest& request, HttpReply& reply);
  Result<ModelHost*> find_model(const nlohmann::json& request);

  AccessRules access_;
  Catalog catalog_;
  std::string app_;
  std::vector<std::unique_ptr<ModelHost>> models_;
  std::function<bool()> go_on_;
};

}  // namespace bezel
