#include <algorithm>
#include <charconv>
#include <chrono>

#include "api/arguments.h"
#include "api/file_reply.h"
#include "api/server.h"
#include "base/format_text.h"

namespace bezel {
namespace {

using nlohmann::json;

constexpr const char* kJson = "application/json";
constexpr const char* kText = "text/plain; charset=utf-8";
constexpr u32 kMaxNesting = 100;

// Text from outside may not be UTF-8; what JSON cannot hold is replaced.
std::string dump(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

void send_json(HttpReply& reply, int status, const json& value) {
  reply.header("Cache-Control", "no-store");
  reply.send(status, kJson, dump(value));
}

void send_error(HttpReply& reply, int status, ErrorKind kind, const std::string& message,
                const char* code = nullptr) {
  send_json(reply, status, openai_error({kind, message}, code));
}

int status_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInvalid:
    case ErrorKind::kUnsupported:
      return 400;
    case ErrorKind::kNotFound:
      return 404;
    case ErrorKind::kMemory:
    case ErrorKind::kCancelled:
      return 503;
    case ErrorKind::kIo:
    case ErrorKind::kDeviceLost:
      break;
  }
  return 500;
}

// Copying and writing JSON go as deep as it is nested: its depth is looked at before anything else is done.
Result<json> parse_body(const std::string& text) {
  u32 depth = 0, deepest = 0;
  bool inside = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (inside) {
      if (c == '\\') ++i;
      inside = c != '"';
    } else if (c == '"') {
      inside = true;
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++depth);
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  if (deepest > kMaxNesting) {
    return invalid("The request is nested {} deep; {} is the most.", deepest, kMaxNesting);
  }
  json value = json::parse(text.begin(), text.end(), nullptr, false);
  if (value.is_discarded()) return invalid("The request is not valid JSON.");
  return value;
}

bool one_of(const std::string& method, std::initializer_list<std::string_view> allowed) {
  return std::ranges::contains(allowed, std::string_view(method));
}

void refuse_method(HttpReply& reply, const char* allowed) {
  reply.header("Allow", allowed);
  send_error(reply, 405, ErrorKind::kInvalid, format_text("This address takes {} only.", allowed));
}

// What lets pages of an allowed site see the answer.
void allow_origin(const HttpRequest& request, HttpReply& reply, const std::string& origin) {
  reply.header("Vary", "Origin");
  if (origin.empty()) {
    reply.header("Cross-Origin-Resource-Policy", "same-origin");
    return;
  }
  reply.header("Access-Control-Allow-Origin", origin);
  reply.header("Cross-Origin-Resource-Policy", "cross-origin");
  reply.header("Access-Control-Expose-Headers", "Accept-Ranges, Content-Length, Content-Range, ETag");
  if (request.method != "OPTIONS") return;
  reply.header("Access-Control-Allow-Methods", "GET, HEAD, POST, OPTIONS");
  reply.header("Access-Control-Max-Age", "600");
  // Clients bring headers of their own; the site is trusted, so its headers are too.
  if (const std::string* wanted = request.header("access-control-request-headers")) {
    reply.header("Access-Control-Allow-Headers", *wanted);
  }
  const std::string* inward = request.header("access-control-request-private-network");
  if (inward != nullptr && *inward == "true") reply.header("Access-Control-Allow-Private-Network", "true");
}

}  // namespace

void Server::handle(const HttpRequest& request, HttpReply& reply) {
  reply.header("X-Content-Type-Options", "nosniff");
  if (!access_.host_allowed(request)) {
    return reply.send(403, kText,
                      "This server does not know itself by that name. Start it with --host or --origin.\n");
  }
  const std::string& first = request.path[0];
  if (first == "api" || first == "v1") {
    handle_api(request, reply);
  } else {
    handle_app(request, reply);
  }
}

void Server::handle_api(const HttpRequest& request, HttpReply& reply) {
  const auto verdict = access_.judge(request);
  if (!verdict.allowed) {
    reply.header("Vary", "Origin");
    return send_error(reply, 403, ErrorKind::kInvalid,
                      "Pages of this origin may not use this server. Start it with --origin to allow them.");
  }
  allow_origin(request, reply, verdict.origin);
  if (request.method == "OPTIONS") return reply.send(204, "", "");

  const auto& path = request.path;
  const bool get = one_of(request.method, {"GET", "HEAD"});
  const auto is = [&](std::initializer_list<std::string_view> wanted) {
    return std::ranges::equal(path, wanted);
  };
  if (is({"v1", "chat", "completions"})) {
    return request.method == "POST" ? complete(request, reply) : refuse_method(reply, "POST");
  }
  if (is({"v1", "models"})) {
    return get ? list_models(reply) : refuse_method(reply, "GET, HEAD");
  }
  if (is({"api", "status"})) {
    if (!get) return refuse_method(reply, "GET, HEAD");
    json models = json::array();
    for (const auto& model : models_) models.push_back(model->status());
    return send_json(reply, 200, {{"version", BEZEL_VERSION}, {"models", std::move(models)}});
  }
  if (is({"api", "models"})) {
    if (!get) return refuse_method(reply, "GET, HEAD");
    json models = json::array();
    for (const CatalogModel& model : catalog_.list()) models.push_back(describe(model));
    return send_json(reply, 200, {{"models", std::move(models)}});
  }
  if ((path.size() == 4 || path.size() == 5) && path[0] == "api" && path[1] == "models" &&
      path[3] == "blob") {
    return get ? send_model(request, reply) : refuse_method(reply, "GET, HEAD");
  }
  send_error(reply, 404, ErrorKind::kNotFound, "There is nothing at this address.");
}

void Server::handle_app(const HttpRequest& request, HttpReply& reply) {
  reply.header("Cross-Origin-Resource-Policy", "same-origin");
  // Together they make pages cross-origin isolated: shared memory, and clocks that are exact.
  reply.header("Cross-Origin-Opener-Policy", "same-origin");
  reply.header("Cross-Origin-Embedder-Policy", "require-corp");
  if (!one_of(request.method, {"GET", "HEAD"})) return refuse_method(reply, "GET, HEAD");
  if (app_.empty() && request.path == std::vector<std::string>{""}) {
    return reply.send(200, kText,
                      "bezel is here: /v1/chat/completions, /v1/models, /api/models, /api/status.\n"
                      "The web app is not; --app names its folder.\n");
  }
  const auto file = app_.empty() ? std::nullopt : find_static_file(app_, request.path);
  if (!file) return reply.send(404, kText, "There is nothing at this address.\n");
  send_file(request, reply, {.path = *file, .type = media_type(*file), .etag = {}});
}

void Server::list_models(HttpReply& reply) const {
  json models = json::array();
  for (const auto& model : models_) {
    models.push_back({{"id", model->name()}, {"object", "model"}, {"created", 0}, {"owned_by", "bezel"}});
  }
  send_json(reply, 200, {{"object", "list"}, {"data", std::move(models)}});
}

void Server::send_model(const HttpRequest& request, HttpReply& reply) const {
  std::size_t part = 0;
  if (request.path.size() == 5) {
    const std::string& text = request.path[4];
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), part);
    if (error != std::errc() || end != text.data() + text.size()) {
      return send_error(reply, 404, ErrorKind::kNotFound, "A part of a model is named by a number.");
    }
  }
  const auto file = catalog_.find(request.path[2], part);
  if (!file) return send_error(reply, 404, ErrorKind::kNotFound, file.error().message);
  send_file(request, reply,
            {.path = file->path,
             .type = "application/octet-stream",
             .etag = file->digest.empty() ? std::string() : format_text("\"{}\"", file->digest)});
}

Result<ModelHost*> Server::find_model(const json& request) {
  if (models_.empty()) {
    return fail(ErrorKind::kNotFound, "No model was named when this server was started: -m names one.");
  }
  const auto name = TRY(Arguments(request).optional<std::string>("model"));
  if (!name && models_.size() == 1) return models_[0].get();
  if (!name) return invalid("'model' is missing.");
  const auto found = std::ranges::find(models_, *name, [](const auto& model) { return model->name(); });
  if (found != models_.end()) return found->get();
  return fail(ErrorKind::kNotFound, "The model {} is not served here; /v1/models lists those that are.",
              quote(*name));
}

void Server::complete(const HttpRequest& request, HttpReply& reply) {
  const auto refuse = [&](const Error& error) {
    const char* code = error.kind == ErrorKind::kNotFound ? "model_not_found" : nullptr;
    send_error(reply, status_of(error.kind), error.kind, error.message, code);
  };
  const auto body = parse_body(request.body);
  if (!body) return refuse(body.error());
  const auto model = find_model(*body);
  if (!model) return refuse(model.error());

  ChatCallbacks callbacks;
  callbacks.go_on = [&] { return go_on_() && !reply.gone(); };
  callbacks.chunk = [&](const json& chunk) {
    // The stream begins with its first chunk: what fails earlier has a status of its own.
    if (!reply.begun()) {
      reply.header("Cache-Control", "no-store");
      reply.begin(200, "text/event-stream", std::nullopt);
    }
    return reply.write(format_text("data: {}\n\n", dump(chunk)));
  };
  const auto done = (*model)->complete(*body, std::move(callbacks));
  if (!reply.begun()) return done ? send_json(reply, 200, *done) : refuse(done.error());
  reply.write(done ? "data: [DONE]\n\n" : format_text("data: {}\n\n", dump(openai_error(done.error()))));
  reply.end();
}

void Server::prepare_models(const std::function<void(const Error&)>& report) {
  for (const auto& model : models_) {
    const Status status = model->prepare(go_on_);
    if (!status && status.error().kind != ErrorKind::kCancelled) report(status.error());
  }
}

}  // namespace bezel
