#include "api/service.h"

#include <algorithm>

#include "api/arguments.h"
#include "api/bench_json.h"
#include "api/openai.h"
#include "api/sampling_request.h"
#include "api/service_models.h"
#include "model/audio_model.h"
#include "model/footprint.h"
#include "model/vision_config.h"
#include "run/bench_products.h"
#include "text/detokenizer.h"

namespace bezel {
namespace {

using nlohmann::json;

json describe(const DeviceInfo& info) {
  return {{"name", info.name},
          {"vendor", info.vendor},
          {"backend", info.backend},
          {"software", info.software},
          {"maxBuffer", info.max_buffer},
          {"maxBinding", info.max_binding},
          {"maxStorageBindings", info.max_storage_bindings},
          {"maxInvocations", info.max_invocations},
          {"maxWorkgroupMemory", info.max_workgroup_memory},
          {"f16", info.f16},
          {"subgroups", info.subgroups},
          {"timestamps", info.timestamps},
          {"subgroupMatrix", info.subgroup_matrix},
          {"integerDots", info.integer_dots}};
}

json describe(const OutputEvent& event) {
  switch (event.kind) {
    case OutputEvent::Kind::kText:
      return {{"type", "text"}, {"text", event.text}};
    case OutputEvent::Kind::kThinking:
      return {{"type", "thinking"}, {"text", event.text}};
    case OutputEvent::Kind::kMalformedCall:
      return {{"type", "malformed_call"}, {"text", event.text}};
    case OutputEvent::Kind::kToolCall:
      return {{"type", "tool_call"}, {"name", event.name}, {"arguments", event.arguments}};
  }
  return {};
}

json describe(const Sample& sample) {
  json event{{"type", "token"}, {"id", sample.token}, {"logprob", sample.logprob}};
  json top = json::array();
  for (const TokenLogprob& other : sample.top)
    top.push_back({{"id", other.token}, {"logprob", other.logprob}});
  event["top"] = std::move(top);
  return event;
}

}  // namespace

const std::map<std::string, Service::Method>& Service::methods() {
  static const std::map<std::string, Method> all = {{"open_device", &Service::open_device},
                                                    {"close_device", &Service::close_device},
                                                    {"load", &Service::load},
                                                    {"probe", &Service::probe},
                                                    {"unload", &Service::unload},
                                                    {"tokenize", &Service::tokenize},
                                                    {"detokenize", &Service::detokenize},
                                                    {"render", &Service::render},
                                                    {"open_session", &Service::open_session},
                                                    {"close_session", &Service::close_session},
                                                    {"feed", &Service::feed},
                                                    {"rewind", &Service::rewind},
                                                    {"generate", &Service::generate},
                                                    {"bench", &Service::bench},
                                                    {"tune", &Service::tune},
                                                    {"bench_kernels", &Service::bench_kernels},
                                                    {"bench_products", &Service::bench_products},
                                                    {"complete", &Service::complete},
                                                    {"save_state", &Service::save_state},
                                                    {"restore_state", &Service::restore_state},
                                                    {"see", &Service::see},
                                                    {"hear", &Service::hear},
                                                    {"forget", &Service::forget},
                                                    {"release_encoders", &Service::release_encoders},
                                                    {"memory", &Service::memory}};
  return all;
}

Task<Result<Answer>> Service::handle(std::string method, json args, Caller caller) {
  const auto found = methods().find(method);
  if (found == methods().end()) co_return invalid("There is no method {}.", quote(method));
  Answer answer = CO_TRY(co_await (this->*found->second)(std::move(args), std::move(caller)));
  if (std::exchange(tuning_is_new_, false)) answer.value["tuning"] = tuning_;
  co_return answer;
}

Task<Result<Answer>> Service::open_device(json args, Caller) {
  const Arguments in(args);
  DeviceOptions options;
  CO_TRY(in.into("f16", options.f16));
  CO_TRY(in.into("subgroups", options.subgroups));
  CO_TRY(in.into("subgroupMatrix", options.subgroup_matrix));
  CO_TRY(in.into("integerDots", options.integer_dots));
  CO_TRY(in.into("timestamps", options.timestamps));
  CO_TRY(in.into("maxMemory", options.max_memory));
  CO_TRY(in.into("maxBinding", options.max_binding));
  CO_TRY(in.into("maxStorageBindings", options.max_storage_bindings));
  CO_TRY(in.into("maxInvocations", options.max_invocations));
  std::shared_ptr<Device> device = CO_TRY(co_await Device::open(options));
  Answer answer;
  answer.value = {{"device", ++next_id_}, {"info", describe(device->info())}};
  devices_[next_id_] = std::move(device);
  co_return answer;
}

Task<Result<Answer>> Service::close_device(json args, Caller) {
  devices_.erase(CO_TRY(Arguments(args).get<u32>("device")));
  co_return Answer{};
}

Result<std::unique_ptr<Source>> Service::open_part(const json& part) const {
  const Arguments about(part);
  const u32 id = TRY(about.get<u32>("source"));
  const u64 size = TRY(about.get<u64>("size"));
  return host_.open_source(id, size, TRY(about.get<std::string>("name")));
}

Result<std::unique_ptr<Source>> Service::open_part(const json& args, const char* key) const {
  const json* part = Arguments(args).find(key);
  if (part == nullptr) return invalid("'{}' is missing.", key);
  return open_part(*part);
}

Task<Result<Gguf>> Service::open_parts(const json& args) {
  const json* parts = Arguments(args).find("parts");
  if (parts == nullptr || !parts->is_array() || parts->empty())
    co_return invalid("'parts' must name the files of the model.");
  std::vector<std::unique_ptr<Source>> sources;
  for (const json& part : *parts) sources.push_back(CO_TRY(open_part(part)));
  co_return co_await Gguf::open(std::move(sources));
}

Task<Result<Answer>> Service::probe(json args, Caller) {
  Gguf file = CO_TRY(co_await open_parts(args));
  const TextModel model = CO_TRY(co_await load_text_model(file));
  const Footprint cost = footprint(file, model, GpuOptions{}.batch);
  co_return Answer{{{"context", model.config.context},
                    {"vocabulary", model.config.vocab},
                    {"parameters", cost.parameters},
                    {"weightBytes", cost.weight_bytes + cost.padding_bytes},
                    {"tableBytes", cost.table_bytes},
                    {"bytesPerToken", cost.bytes_per_token},
                    {"kvPerToken", cost.kv_per_token},
                    {"kvFixed", cost.kv_fixed},
                    {"largestRow", cost.largest_piece},
                    {"sees", has_vision(file)},
                    {"hears", has_audio(file)}},
                   {}};
}

Task<Result<Answer>> Service::load(json args, Caller caller) {
  const Arguments in(args);
  auto model = std::make_shared<LoadedModel>();
  LoadOptions options;
  if (in.find("device") != nullptr) {
    model->device = CO_TRY(find(devices_, args, "device"));
    options.device = model->device.get();
  }
  const auto kv = CO_TRY(in.get<std::string>("kv", "f32"));
  const auto kv_type = kv_type_named(kv);
  if (!kv_type) co_return invalid("'kv' must be f32, f16 or q8, not {}.", quote(kv));
  options.kv = *kv_type;
  CO_TRY(in.into("bf16Rope", options.bf16_rope));
  CO_TRY(in.into("batch", options.gpu.batch));
  CO_TRY(in.into("memoryBudget", options.memory_budget));
  CO_TRY(in.into("tuning", options.gpu.tuning));
  if (!options.gpu.tuning.empty()) tuning_ = options.gpu.tuning;
  options.gpu.learned = [this, device = options.device](const Tuning& news) {
    Tuning all = Tuning::parse(tuning_, device->info());
    all.add(news);
    tuning_ = all.text(device->info());
    tuning_is_new_ = true;
  };
  const auto relays = CO_TRY(in.get<std::string>("relays", "auto"));
  const auto named = relays_named(relays);
  if (!named) co_return invalid("'relays' must be auto, trial, on or off, not {}.", quote(relays));
  options.gpu.relays = *named;
  const auto table = CO_TRY(in.get<std::string>("perLayerTable", "auto"));
  if (table == "device") {
    options.per_layer_table = PerLayerTable::kDevice;
  } else if (table == "source") {
    options.per_layer_table = PerLayerTable::kSource;
  } else if (table != "auto") {
    co_return invalid("'perLayerTable' must be auto, device or source.");
  }
  options.pause = host_.pause;
  options.progress = [&](u64 done, u64 total) {
    caller.event({{"type", "progress"}, {"done", done}, {"total", total}});
    return caller.go_on();
  };
  EngineHints hints;
  CO_TRY(in.into("renderer", hints.renderer));
  CO_TRY(in.into("modelName", hints.model_name));
  CO_TRY(in.into("parameterSize", hints.parameter_size));
  CO_TRY(in.into("ollamaParams", hints.ollama_params));
  Gguf file = CO_TRY(co_await open_parts(args));
  std::optional<Gguf> projector;
  if (const json* part = in.find("projector")) {
    std::vector<std::unique_ptr<Source>> one;
    one.push_back(CO_TRY(open_part(*part)));
    projector = CO_TRY(co_await Gguf::open(std::move(one)));
  }
  model->engine = CO_TRY(
      co_await Engine::load(std::move(file), std::move(hints), std::move(options), std::move(projector)));
  const TextConfig& config = model->engine->config();
  const Footprint cost =
      footprint(model->engine->file(), model->engine->backend().model(), model->engine->backend().batch());
  Answer answer;
  answer.value = {{"model", ++next_id_},
                  {"vocabulary", config.vocab},
                  {"context", config.context},
                  {"layers", config.layers.size()},
                  {"width", config.width},
                  {"batch", model->engine->backend().batch()},
                  {"parameters", cost.parameters},
                  {"weightBytes", cost.weight_bytes + cost.padding_bytes},
                  {"bytesPerToken", cost.bytes_per_token},
                  {"sees", model->engine->towers().sees()},
                  {"hears", model->engine->towers().hears()}};
  models_[next_id_] = std::move(model);
  co_return answer;
}

Task<Result<Answer>> Service::unload(json args, Caller) {
  const auto model = CO_TRY(find(models_, args, "model"));
  std::erase_if(sessions_, [&](const auto& entry) { return entry.second->model == model; });
  models_.erase(CO_TRY(Arguments(args).get<u32>("model")));
  co_return Answer{};
}

Task<Result<Answer>> Service::tokenize(json args, Caller) {
  const auto model = CO_TRY(find(models_, args, "model"));
  const bool parse = CO_TRY(Arguments(args).get("special", false));
  std::vector<u32> ids;
  model->engine->tokenizer().encode(CO_TRY(Arguments(args).get<std::string>("text")),
                                    parse ? Specials::kParse : Specials::kPlain, ids);
  co_return Answer{{{"tokens", ids}}, {}};
}

Task<Result<Answer>> Service::detokenize(json args, Caller) {
  const auto model = CO_TRY(find(models_, args, "model"));
  Detokenizer decoder(model->engine->tokenizer());
  std::string text;
  for (const u32 id : CO_TRY(Arguments(args).list<u32>("tokens"))) text += decoder.push(id);
  text += decoder.finish();
  co_return Answer{{{"text", text}}, {}};
}

Task<Result<Answer>> Service::render(json args, Caller) {
  const auto model = CO_TRY(find(models_, args, "model"));
  const Arguments in(args);
  ChatOptions options{.form = model->engine->chat_template(),
                      .thinking = CO_TRY(in.get("thinking", false)),
                      .continue_last = CO_TRY(in.get("continueLast", false)),
                      .tools = in.find("tools")};
  const json* messages = in.find("messages");
  if (messages == nullptr) co_return invalid("'messages' is missing.");
  std::vector<const json*> parts;
  const auto items = CO_TRY(render_chat(*messages, options, &parts));
  std::vector<Medium> media;
  for (const json* part : parts) media.push_back(CO_TRY(co_await model->find_media(*part)));
  co_return Answer{{{"text", join(items)},
                    {"tokens", CO_TRY(model->engine->encode_chat(items, media)).ids},
                    {"inThought", ends_in_thought(items)}},
                   {}};
}

Task<Result<Answer>> Service::open_session(json args, Caller) {
  const auto model = CO_TRY(find(models_, args, "model"));
  const u32 context = CO_TRY(Arguments(args).get<u32>("context", model->usual_context()));
  Session session = CO_TRY(Session::create(model->engine->backend(), context));
  if (model->device) CO_TRY(co_await model->device->settle());  // is there memory for it?
  const u64 bytes = session.cache_bytes();
  sessions_[++next_id_] = std::make_shared<OpenSession>(model, std::move(session));
  co_return Answer{{{"session", next_id_}, {"context", context}, {"bytes", bytes}}, {}};
}

Task<Result<Answer>> Service::close_session(json args, Caller) {
  sessions_.erase(CO_TRY(Arguments(args).get<u32>("session")));
  co_return Answer{};
}

Task<Result<Answer>> Service::feed(json args, Caller caller) {
  const auto open = CO_TRY(find(sessions_, args, "session"));
  const auto ids = CO_TRY(Arguments(args).list<u32>("tokens"));
  const bool all = CO_TRY(Arguments(args).get("all", false));
  const auto turn = co_await open->model->lock.turn();
  Answer answer;
  if (all) {
    CO_TRY(co_await open->session.feed_all({ids}, answer.numbers));
  } else {
    CO_TRY(co_await open->session.feed(ids, caller.go_on));
    answer.numbers.assign(open->session.logits().begin(), open->session.logits().end());
  }
  answer.value = {{"position", open->session.position()}};
  co_return answer;
}

Task<Result<Answer>> Service::rewind(json args, Caller) {
  const auto open = CO_TRY(find(sessions_, args, "session"));
  const u32 count = CO_TRY(Arguments(args).get<u32>("count"));
  const auto turn = co_await open->model->lock.turn();
  CO_TRY(co_await open->session.rewind(count));
  co_return Answer{{{"position", open->session.position()}}, {}};
}

Task<Result<Answer>> Service::generate(json args, Caller caller) {
  const auto open = CO_TRY(find(sessions_, args, "session"));
  Engine& engine = *open->model->engine;
  const Arguments in(args);
  GenerateOptions options;
  options.sampling = engine.sampling();
  CO_TRY(read_sampling(in, engine.config().vocab, options.sampling));
  for (const u32 id : CO_TRY(in.list<u32>("suppressed"))) options.sampling.suppressed.push_back(id);
  CO_TRY(in.into("max_tokens", options.max_tokens));
  options.stops = CO_TRY(in.list<std::string>("stop"));
  options.parsing = {.start_in_thought = CO_TRY(in.get("inThought", false)),
                     .thinking = CO_TRY(in.get("thinking", true)),
                     .tools = in.find("tools")};
  options.go_on = caller.go_on;
  options.on_event = [&](const OutputEvent& event) {
    caller.event(describe(event));
    return caller.go_on();
  };
  if (CO_TRY(in.get("tokenEvents", false)) || options.sampling.logprobs) {
    options.on_token = [&](const Sample& sample) { caller.event(describe(sample)); };
  }
  const auto prompt = CO_TRY(in.list<u32>("prompt"));
  const auto turn = co_await open->model->lock.turn();
  const Reply reply = CO_TRY(co_await bezel::generate(engine, open->session, {prompt}, std::move(options)));
  co_return Answer{{{"reason", name_of(reply.reason)},
                    {"stopped", reply.stopped_by_caller},
                    {"promptTokens", reply.prompt_tokens},
                    {"reusedTokens", reply.reused_tokens},
                    {"generatedTokens", reply.generated_tokens},
                    {"position", open->session.position()}},
                   {}};
}

Task<Result<Answer>> Service::bench(json args, Caller caller) {
  const auto model = CO_TRY(find(models_, args, "model"));
  const Arguments in(args);
  BenchOptions options;
  CO_TRY(in.into("prompt", options.prompt));
  CO_TRY(in.into("generate", options.generate));
  CO_TRY(in.into("depth", options.depth));
  CO_TRY(in.into("repetitions", options.repetitions));
  options.go_on = caller.go_on;
  const auto turn = co_await model->lock.turn();
  co_return Answer{to_json(CO_TRY(co_await bezel::bench(*model->engine, model->device.get(), options))), {}};
}

Task<Result<Answer>> Service::bench_kernels(json args, Caller caller) {
  const auto device = CO_TRY(find(devices_, args, "device"));
  const bool tiles = CO_TRY(Arguments(args).get<bool>("tiles", false));
  json rates = json::array();
  CO_TRY(
      co_await bezel::bench_kernels(*device, published_shapes(*device, tiles), [&](const KernelRate& rate) {
        rates.push_back(to_json(rate));
        return !caller.go_on || caller.go_on();
      }));
  co_return Answer{{{"rates", std::move(rates)}}, {}};
}

Task<Result<Answer>> Service::bench_products(json args, Caller caller) {
  const auto device = CO_TRY(find(devices_, args, "device"));
  const Arguments in(args);
  BenchProductsOptions options;
  CO_TRY(in.into("products", options.products));
  options.units = CO_TRY(in.optional<bool>("units"));
  CO_TRY(in.into("repetitions", options.repetitions));
  options.go_on = caller.go_on;
  const json* shapes = in.find("shapes");
  if (shapes == nullptr || !shapes->is_array()) co_return invalid("'shapes' must be a list.");
  std::vector<KernelShape> wanted;
  for (const json& shape : *shapes) wanted.push_back(CO_TRY(read_kernel_shape(shape)));
  const auto rates = CO_TRY(co_await bezel::bench_products(*device, std::move(wanted), std::move(options)));
  Answer answer;
  answer.value = {{"kernels", json::array()}};
  for (const KernelRate& rate : rates) answer.value["kernels"].push_back(to_json(rate));
  co_return answer;
}

Task<Result<Answer>> Service::complete(json args, Caller caller) {
  const Arguments in(args);
  std::shared_ptr<OpenSession> open;
  if (in.find("session") != nullptr) open = CO_TRY(find(sessions_, args, "session"));
  const auto model = open ? open->model : CO_TRY(find(models_, args, "model"));
  const json* request = in.find("request");
  if (request == nullptr) co_return invalid("'request' is missing.");
  const json* asked = Arguments(*request).find("model");
  const std::string name =
      CO_TRY(in.get<std::string>("name", asked && asked->is_string() ? asked->get<std::string>() : "bezel"));
  const u32 context = CO_TRY(in.get<u32>("context", model->usual_context()));
  ChatCallbacks callbacks;
  callbacks.go_on = caller.go_on;
  callbacks.chunk = [&](const json& chunk) {
    caller.event({{"type", "chunk"}, {"chunk", chunk}});
    return caller.go_on();
  };
  const auto turn = co_await model->lock.turn();
  const auto read_media = [&](const json& part) { return model->find_media(part); };
  ChatRequest chat = CO_TRY(co_await read_chat_request(*model->engine, *request, {}, read_media));
  Session* session = open ? &open->session : nullptr;
  if (!open) session = CO_TRY(co_await model->pool_of(context).take(chat.prompt));
  Answer answer;
  answer.value =
      CO_TRY(co_await complete_chat(*model->engine, *session, std::move(chat), name, std::move(callbacks)));
  co_return answer;
}

Task<Result<Answer>> Service::save_state(json args, Caller caller) {
  const auto model = CO_TRY(find(models_, args, "model"));
  const ByteSink sink = host_.open_sink(CO_TRY(Arguments(args).get<u32>("sink")));
  const auto turn = co_await model->lock.turn();
  const Session* session = model->pool ? model->pool->latest() : nullptr;
  if (session == nullptr) co_return fail(ErrorKind::kNotFound, "There is no conversation to save yet.");
  u64 bytes = 0;
  CO_TRY(co_await session->save([&](Bytes part) -> Status {
    if (!caller.go_on()) return fail(ErrorKind::kCancelled, "Saving was stopped.");
    bytes += part.size();
    return sink(part);
  }));
  co_return Answer{{{"tokens", session->position()}, {"bytes", bytes}}, {}};
}

Task<Result<Answer>> Service::restore_state(json args, Caller) {
  const auto model = CO_TRY(find(models_, args, "model"));
  const Arguments in(args);
  const auto source = CO_TRY(open_part(args, "part"));
  const u32 context = CO_TRY(in.get<u32>("context", model->usual_context()));
  const auto turn = co_await model->lock.turn();
  Session* session = CO_TRY(co_await model->pool_of(context).take({}));
  CO_TRY(co_await session->restore(*source));
  co_return Answer{{{"tokens", session->position()}}, {}};
}

Task<Result<Answer>> Service::memory(json, Caller) {
  u64 gpu = 0;
  for (const auto& [id, device] : devices_) gpu += device->allocated();
  co_return Answer{{{"gpu", gpu}, {"models", models_.size()}, {"sessions", sessions_.size()}}, {}};
}

}  // namespace bezel
