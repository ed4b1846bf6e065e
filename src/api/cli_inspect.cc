#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "api/cli.h"
#include "base/format_text.h"
#include "base/quote.h"
#include "io/resolve.h"
#include "model/footprint.h"
#include "run/backend.h"

namespace bezel {
namespace {

constexpr u32 kBatch = 512;  // how many tokens a device is fed at once; lengthens the sliding layers' rings

using nlohmann::json;

json describe(const Gguf& file, const TextModel& model) {
  const TextConfig& config = model.config;
  const Footprint cost = footprint(file, model, kBatch);
  json out;
  out["file"] = file.name();
  out["file_bytes"] = file.file_bytes();
  const auto name = file.get_string("general.name");
  out["name"] = name && *name ? json(**name) : json();
  out["model"] = text_model_name(config);
  u32 global = 0;
  for (const LayerConfig& layer : config.layers) global += !layer.sliding;
  out["layers"] = config.layers.size();
  out["global_layers"] = global;
  out["kv_layers"] = config.owned_kv_layers();
  out["width"] = config.width;
  out["heads"] = config.layers[0].heads;
  out["vocabulary"] = config.vocab;
  out["context"] = config.context;
  out["window"] = config.window;
  out["per_layer_embedding"] = config.ple;
  out["experts"] = config.experts;
  out["experts_used"] = config.experts_used;
  out["parameters"] = cost.parameters;
  out["weight_bytes"] = cost.weight_bytes;
  out["padding_bytes"] = cost.padding_bytes;
  out["per_layer_table_bytes"] = cost.table_bytes;
  out["bytes_per_token"] = cost.bytes_per_token;
  for (const KvType type : {KvType::kF16, KvType::kQ8}) {
    if (!check_heads(config, type, false)) continue;
    json& bytes = out[format_text("kv_bytes_{}", kv_name(type))] = json::object();
    for (const u32 context : {4096u, 32768u, 131072u, 262144u}) {
      if (context <= config.context)
        bytes[std::to_string(context)] = kv_bytes(type, cost.kv_elements(context));
    }
  }
  out["types"] = json::array();
  for (const auto& [type, count] : quant_mix(file)) {
    out["types"].push_back({{"type", dtype_name(type)}, {"tensors", count.tensors}, {"bytes", count.bytes}});
  }
  out["other_tensors"] = std::ranges::count_if(
      file.tensors(), [](const TensorInfo& info) { return !is_text_tensor(info.name); });
  out["tensors"] = file.tensors().size();
  return out;
}

std::string human_count(u64 n) {
  if (n < 1'000'000) return std::to_string(n);
  if (n < 1'000'000'000) return format_text("{:.1f} M", static_cast<f64>(n) / 1e6);
  return format_text("{:.2f} B", static_cast<f64>(n) / 1e9);
}

void line(const char* label, const std::string& text) { std::printf("%-12s %s\n", label, text.c_str()); }

void print(const json& d, const Gguf& file, bool all_tensors) {
  line("file", format_text("{} ({})", d["file"].get<std::string>(), human_bytes(d["file_bytes"])));
  const std::string name = d["name"].is_string() ? printable(d["name"].get<std::string>()) + ", " : "";
  line("model", format_text("{}Gemma 4 {}, {} parameters", name, d["model"].get<std::string>(),
                            human_count(d["parameters"])));
  line("layers", format_text("{} ({} global, the others see {} tokens), {} with keys and values of their own",
                             d["layers"].get<u64>(), d["global_layers"].get<u64>(), d["window"].get<u64>(),
                             d["kv_layers"].get<u64>()));
  std::string extras;
  if (d["per_layer_embedding"] != 0)
    extras += format_text(", per-layer embeddings of {}", d["per_layer_embedding"].get<u64>());
  if (d["experts"] != 0) {
    extras += format_text(", {} experts of which a token uses {}", d["experts"].get<u64>(),
                          d["experts_used"].get<u64>());
  }
  line("width", format_text("{}, {} heads, vocabulary of {}{}", d["width"].get<u64>(), d["heads"].get<u64>(),
                            d["vocabulary"].get<u64>(), extras));
  line("context", format_text("{} tokens", d["context"].get<u64>()));
  std::string table;
  if (d["per_layer_table_bytes"] != 0) {
    table = format_text(", {} of it the per-layer table, which can stay on disk",
                        human_bytes(d["per_layer_table_bytes"]));
  }
  line("weights", human_bytes(d["weight_bytes"]) + table);
  line("per token",
       format_text("{} of weights are read to generate one token", human_bytes(d["bytes_per_token"])));
  for (const auto& [context, bytes] : d["kv_bytes_f16"].items()) {
    const u64 total = bytes.get<u64>() + d["weight_bytes"].get<u64>() + d["padding_bytes"].get<u64>();
    const u64 on_disk = d["per_layer_table_bytes"].get<u64>();
    std::string as_q8;  // for heads that can be stored so
    if (d.contains("kv_bytes_q8")) as_q8 = format_text(", {} as q8", human_bytes(d["kv_bytes_q8"][context]));
    line("memory",
         format_text("{} for {} tokens of context ({} of f16 keys and values{}){}", human_bytes(total),
                     context, human_bytes(bytes), as_q8,
                     on_disk == 0 ? "" : ", " + human_bytes(total - on_disk) + " with the table on disk"));
  }
  std::string mix;
  for (const auto& type : d["types"]) {
    mix += format_text("{}{} {} ({})", mix.empty() ? "" : ", ", type["tensors"].get<u64>(),
                       type["type"].get<std::string>(), human_bytes(type["bytes"]));
  }
  line("tensors", format_text("{}: {}", d["tensors"].get<u64>(), mix));
  if (d["other_tensors"] != 0) {
    line("", format_text("{} of them are vision and audio", d["other_tensors"].get<u64>()));
  }
  if (!all_tensors) return;
  std::printf("\n");
  for (const TensorInfo& info : file.tensors()) {
    std::string shape;
    for (u32 i = 0; i < info.dims; ++i) shape += format_text("{}{}", i == 0 ? "" : " x ", info.ne[i]);
    std::printf("%s\n", format_text("{:<40} {:<8} {:<24} {}", printable(info.name), dtype_name(info.type),
                                    shape, human_bytes(info.bytes))
                            .c_str());
  }
}

// Every file of a model from Ollama's store against the digest it is named by.
Status verify(const std::string& name) {
  const ModelFiles files = TRY(resolve_model(name));
  if (!files.ollama) {
    return invalid("--verify is for models from Ollama's store: {} has no digest to compare with.",
                   quote(name));
  }
  std::vector<OllamaBlob> blobs = files.ollama->adapters;
  blobs.push_back(files.ollama->model);
  if (files.ollama->projector) blobs.push_back(*files.ollama->projector);
  if (files.ollama->draft) blobs.push_back(*files.ollama->draft);
  catch_interrupts();
  for (const OllamaBlob& blob : blobs) {
    TRY(verify_blob(blob.path, blob.digest, [](u64, u64) { return !interrupted(); }));
  }
  return {};
}

Status inspect(const std::string& name, bool as_json, bool all_tensors, bool verifies) {
  if (verifies) TRY(verify(name));
  auto opened = TRY(open_model(name));
  const TextModel model = TRY(run_now(load_text_model(opened.file)));
  json description = describe(opened.file, model);
  if (!as_json) {
    print(description, opened.file, all_tensors);
    return {};
  }
  if (all_tensors) {
    json list = json::array();
    for (const TensorInfo& info : opened.file.tensors()) {
      list.push_back({{"name", info.name},
                      {"type", dtype_name(info.type)},
                      {"shape", std::vector<u64>(info.ne.begin(), info.ne.begin() + info.dims)},
                      {"bytes", info.bytes}});
    }
    description["tensor_list"] = std::move(list);
  }
  std::printf("%s\n", description.dump(2, ' ', false, json::error_handler_t::replace).c_str());
  return {};
}

}  // namespace

void add_inspect(CLI::App& app, CommandResult& result) {
  auto* command = app.add_subcommand("inspect", "Say what a model is, what is in it and what it needs");
  struct Options {
    std::string model;
    bool json = false, tensors = false, verify = false;
  };
  auto options = std::make_shared<Options>();
  command->add_option("MODEL", options->model, "A .gguf file or an Ollama name")->required();
  command->add_flag("--json", options->json, "Print JSON");
  command->add_flag("--tensors", options->tensors, "List every tensor");
  command->add_flag("--verify", options->verify, "First compare an Ollama model's files with their SHA-256");
  command->callback([options, &result] {
    result = inspect(options->model, options->json, options->tensors, options->verify);
  });
}

}  // namespace bezel
