// The engine behind a host that speaks JSON: devices, models and sessions by number, one method per request.
// Requests may overlap; those to one model take turns.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/async_lock.h"
#include "run/generate.h"

namespace bezel {

struct Answer {
  nlohmann::json value = nlohmann::json::object();
  std::vector<f32> numbers;  // too many for JSON: logits
};

// How a request reaches whoever made it while it runs.
struct Caller {
  std::function<void(const nlohmann::json&)> event;
  std::function<bool()> go_on;  // false: the caller wants it to stop
};

// What the service needs of its host. Files go by the host's numbers.
struct ServiceHost {
  std::function<std::unique_ptr<Source>(u32 id, u64 size, std::string name)> open_source;
  std::function<ByteSink(u32 id)> open_sink;
  std::function<Task<Status>()> pause;  // see LoadOptions
};

class Service {
 public:
  explicit Service(ServiceHost host) : host_(std::move(host)) {}

  // The methods are documented where the host declares them: web/src/protocol.ts.
  Task<Result<Answer>> handle(std::string method, nlohmann::json args, Caller caller);

 private:
  struct LoadedModel;
  struct OpenSession;
  using Method = Task<Result<Answer>> (Service::*)(nlohmann::json args, Caller caller);
  static const std::map<std::string, Method>& methods();

  Task<Result<Answer>> open_device(nlohmann::json args, Caller caller);
  Task<Result<Answer>> close_device(nlohmann::json args, Caller caller);
  Task<Result<Answer>> load(nlohmann::json args, Caller caller);
  Task<Result<Answer>> probe(nlohmann::json args, Caller caller);
  Task<Result<Answer>> unload(nlohmann::json args, Caller caller);
  Task<Result<Answer>> tokenize(nlohmann::json args, Caller caller);
  Task<Result<Answer>> detokenize(nlohmann::json args, Caller caller);
  Task<Result<Answer>> render(nlohmann::json args, Caller caller);
  Task<Result<Answer>> open_session(nlohmann::json args, Caller caller);
  Task<Result<Answer>> close_session(nlohmann::json args, Caller caller);
  Task<Result<Answer>> feed(nlohmann::json args, Caller caller);
  Task<Result<Answer>> rewind(nlohmann::json args, Caller caller);
  Task<Result<Answer>> generate(nlohmann::json args, Caller caller);
  Task<Result<Answer>> bench(nlohmann::json args, Caller caller);
  Task<Result<Answer>> tune(nlohmann::json args, Caller caller);
  Task<Result<Answer>> bench_kernels(nlohmann::json args, Caller caller);
  Task<Result<Answer>> bench_products(nlohmann::json args, Caller caller);
  Task<Result<Answer>> complete(nlohmann::json args, Caller caller);
  Task<Result<Answer>> save_state(nlohmann::json args, Caller caller);
  Task<Result<Answer>> restore_state(nlohmann::json args, Caller caller);
  Task<Result<Answer>> see(nlohmann::json args, Caller caller);
  Task<Result<Answer>> hear(nlohmann::json args, Caller caller);
  Task<Result<Answer>> forget(nlohmann::json args, Caller caller);
  Task<Result<Answer>> release_encoders(nlohmann::json args, Caller caller);
  Task<Result<Answer>> memory(nlohmann::json args, Caller caller);

  Result<std::unique_ptr<Source>> open_part(const nlohmann::json& part) const;
  Result<std::unique_ptr<Source>> open_part(const nlohmann::json& args, const char* key) const;
  Answer remember(LoadedModel& model, std::shared_ptr<const SoftTokens> soft);
  Task<Result<Gguf>> open_parts(const nlohmann::json& args);

  ServiceHost host_;
  u32 next_id_ = 0;
  // What the host keeps of all models' tuning: as it last gave it, and what was found out since.
  std::string tuning_;
  bool tuning_is_new_ = false;  // the next answer has it
  // Closing takes a thing off these lists; it goes when the last request that uses it has ended.
  std::map<u32, std::shared_ptr<Device>> devices_;
  std::map<u32, std::shared_ptr<LoadedModel>> models_;
  std::map<u32, std::shared_ptr<OpenSession>> sessions_;
};

}  // namespace bezel
