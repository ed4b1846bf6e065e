#include <csignal>
#include <cstdio>
#include <filesystem>
#include <thread>

#include "api/cli.h"
#include "api/cli_tls.h"
#include "api/server.h"
#include "io/files.h"
#include "io/resolve.h"

namespace bezel {
namespace {

namespace fs = std::filesystem;

struct ServeOptions {
  std::vector<std::string> models, origins;
  std::string host = "127.0.0.1", folder, app, certificate, key;
  u16 port = 8080;
  u32 context = 4096;
  BackendChoice backend;
};

// The app as it is built in the checkout that the program lies in, or nothing.
std::string built_app() {
  const std::string index = checkout_file("web/app/dist/index.html");
  return index.empty() ? index : fs::path(index).parent_path().string();
}

Result<HostedEngine> load(const std::string& model, const BackendChoice& backend,
                          const ModelHost::Progress& progress) {
  OpenedModel opened = TRY(open_model(model));
  HostedEngine out;
  out.system = opened.system;
  LoadOptions options;
  options.progress = progress;
  LoadedEngine loaded = TRY(load_engine(std::move(opened), backend, std::move(options)));
  out.device = std::move(loaded.device);
  out.engine = std::move(loaded.engine);
  return out;
}

Status serve(const ServeOptions& o) {
  if (o.certificate.empty() != o.key.empty()) return invalid("--cert and --key belong together.");
  const bool encrypted = !o.certificate.empty();
  const std::string app = o.app.empty() ? built_app() : o.app;
  if (!o.app.empty() && !is_folder(o.app)) return invalid("{} is not a folder.", quote(o.app));
  if (!o.folder.empty() && !is_folder(o.folder)) {
    return invalid("{} is not a folder.", quote(o.folder));
  }
  std::string host = o.host;
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  AccessRules access = TRY(AccessRules::make(host, o.origins, encrypted));

  std::vector<std::string> files;
  std::vector<std::unique_ptr<ModelHost>> models;
  for (const std::string& model : o.models) {
    const ModelFiles found = TRY(resolve_model(model));  // a name that is wrong is told at once
    if (!found.ollama) files.push_back(found.model);
    const std::string name = found.ollama ? found.ollama->name : Catalog::name_of(found.model);
    const auto backend = o.backend;
    models.push_back(std::make_unique<ModelHost>(
        name, [=](const ModelHost::Progress& progress) { return load(model, backend, progress); },
        o.context));
  }

  HttpServer::Options options;
  if (encrypted) options.connect = TRY(tls_connections(o.certificate, o.key));
  const auto listener = TRY(HttpServer::listen(host, o.port, std::move(options)));
  catch_interrupts(true);
  std::signal(SIGPIPE, SIG_IGN);
  Server server(std::move(access), Catalog(OllamaStore::at(OllamaStore::default_root()), o.folder, files),
                app, std::move(models), [] { return !interrupted(); });
  std::printf("bezel is at %s://%s:%u\n", encrypted ? "https" : "http",
              host.contains(':') ? ("[" + host + "]").c_str() : host.c_str(), listener->port());
  std::fflush(stdout);
  std::thread loader([&] {
    server.prepare_models(
        [](const Error& error) { std::fprintf(stderr, "bezel: %s\n", error.message.c_str()); });
  });
  listener->run([&](const HttpRequest& request, HttpReply& reply) { server.handle(request, reply); },
                interrupted);
  loader.join();
  return {};
}

}  // namespace

void add_serve(CLI::App& app, CommandResult& result) {
  auto* command =
      app.add_subcommand("serve", "Serve the web app, model files and OpenAI's chat completions over HTTP");
  auto o = std::make_shared<ServeOptions>();
  command->add_option("-m,--model", o->models, "Answer /v1 with this model; may be repeated");
  command->add_option("--models", o->folder,
                      "Offer the .gguf files of this folder to the app, beside Ollama's");
  command->add_option("--app", o->app, "The folder of the web app");
  command->add_option("--host", o->host, "The address to listen at; 0.0.0.0 lets other machines in")
      ->capture_default_str();
  command->add_option("--port", o->port, "0 takes any that is free")->capture_default_str();
  command->add_option("--origin", o->origins,
                      "Let pages of this site, such as https://example.org, use the server; may be repeated");
  command->add_option("--cert", o->certificate, "Speak HTTPS: the certificate, a PEM file");
  command->add_option("--key", o->key, "The certificate's key, a PEM file");
  command->add_option("--context", o->context, "Tokens to remember of a conversation")
      ->capture_default_str()
      ->check(CLI::Range(1u, 1u << 24));
  add_backend_option(*command, o->backend);
  command->callback([o, &result] { result = serve(*o); });
}

}  // namespace bezel
