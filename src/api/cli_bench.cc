#include <cstdio>
#include <nlohmann/json.hpp>

#include "api/bench_json.h"
#include "api/cli.h"
#include "base/format_text.h"
#include "graph/fuse.h"
#include "run/bench_kernels.h"
#include "run/bench_layouts.h"

namespace bezel {
namespace {

using nlohmann::json;

json describe(const Device* device) {
  if (device == nullptr) return {};
  return {{"name", device->info().name},
          {"vendor", device->info().vendor},
          {"api", device->info().backend},
          {"software", device->info().software}};
}

std::string name_of(const Device* device) {
  if (device == nullptr) return "the CPU, in double precision";
  return format_text("{} ({}{})", printable(device->info().name), device->info().backend,
                     device->info().software ? ", in software" : "");
}

void print(const json& out) {
  std::printf("%s\n", out.dump(2, ' ', false, json::error_handler_t::replace).c_str());
}

json describe(const LoadedEngine& loaded, const BackendChoice& backend, const BenchOptions& options,
              const BenchReport& report) {
  const Device* device = loaded.device.get();
  json out = to_json(report);
  out["file"] = loaded.engine->file().name();
  out["model"] = text_model_name(loaded.engine->config());
  out["backend"] = device != nullptr ? "gpu" : "cpu";
  out["device"] = describe(device);
  out["kernel_times"] = device != nullptr && device->info().timestamps;
  out["kv"] = backend.kv;
  out["prompt"] = options.prompt;
  out["generate"] = options.generate;
  out["depth"] = options.depth;
  out["repetitions"] = options.repetitions;
  return out;
}

void line(const char* label, const std::string& text) { std::printf("%-12s %s\n", label, text.c_str()); }

void print_kernels(const char* title, const BenchPart& part) {
  f64 total = 0;
  for (const KernelTotal& kernel : part.kernels) total += kernel.milliseconds.value_or(0);
  std::printf("\n%-34s %10s %12s %8s\n", title, "dispatches", "ms", "share");
  for (const KernelTotal& kernel : part.kernels) {
    std::printf("  %-32s %10u", kernel.label.c_str(), kernel.dispatches);
    if (kernel.milliseconds) {
      std::printf(" %12.4f %6.1f %%", *kernel.milliseconds,
                  100 * *kernel.milliseconds / std::max(total, 1e-9));
    }
    std::printf("\n");
  }
  std::printf("  %-32s %10u", "all", part.dispatches);
  if (total > 0) std::printf(" %12.4f", total);
  std::printf("\n");
}

void print(const LoadedEngine& loaded, const BackendChoice& backend, const BenchOptions& options,
           const BenchReport& report) {
  const Device* device = loaded.device.get();
  line("model", format_text("Gemma 4 {}, {}", text_model_name(loaded.engine->config()),
                            printable(loaded.engine->file().name())));
  line("device", name_of(device));
  line("prefill",
       format_text("{:.1f} tok/s over {} tokens", report.prefill.tokens_per_second, options.prompt));
  line("decode", format_text("{:.2f} tok/s over {} tokens after {}{}", report.decode.tokens_per_second,
                             options.generate, options.depth,
                             backend.kv == "f32" ? "" : ", keys and values as " + backend.kv));
  line("per token", format_text("{} of weights, {} dispatches", human_bytes(report.bytes_per_token),
                                report.decode.dispatches));
  if (report.read_bandwidth) {
    line("bandwidth", format_text("{}/s in a loop that only reads; decoding uses {:.1f} % of it",
                                  human_bytes(static_cast<u64>(*report.read_bandwidth)),
                                  100 * report.bandwidth_share.value_or(0)));
  }
  if (device == nullptr) return;
  print_kernels("one token", report.decode);
  print_kernels(format_text("a pass over {} tokens", report.prefill.pass_tokens).c_str(), report.prefill);
  if (!device->info().timestamps)
    std::printf("\nThis GPU has no timestamps: the times of kernels are unknown.\n");
}

Status bench_model(const std::string& name, const BackendChoice& backend, const GpuOptions& gpu,
                   BenchOptions options, bool as_json) {
  catch_interrupts();
  LoadOptions load;
  load.gpu = gpu;
  const auto loaded = TRY(load_engine(TRY(open_model(name)), backend, std::move(load)));
  options.go_on = [] { return !interrupted(); };
  const BenchReport report = TRY(run_now(bench(*loaded.engine, loaded.device.get(), options)));
  if (as_json) {
    print(describe(loaded, backend, options, report));
  } else {
    print(loaded, backend, options, report);
  }
  return {};
}

// The width of the model that reads the soft tokens: the encoders' own file is enough to measure them.
Result<u32> soft_width(const Gguf& file) {
  for (const char* name : {"mm.input_projection.weight", "mm.a.input_projection.weight"}) {
    const TensorInfo* tensor = file.tensor(name);
    if (tensor != nullptr && tensor->ne[1] < 1 << 17) return static_cast<u32>(tensor->ne[1]);
  }
  return invalid("{} has no encoders to measure.", file.name());
}

Status bench_encoders(const std::string& name, const MediaOptions& media, const BackendChoice& backend,
                      BenchOptions options, bool as_json) {
  catch_interrupts();
  options.go_on = [] { return !interrupted(); };
  OpenedModel model = TRY(open_model(name, media.projector));
  Gguf* projector = model.projector ? &*model.projector : nullptr;
  const u32 width = TRY(soft_width(projector != nullptr ? *projector : model.file));
  const auto device = TRY(choose_device(backend));
  Towers towers(model.file, projector, width, device.get());
  json reports = json::array();
  if (!as_json) line("device", name_of(device.get()));
  const auto tell = [&](const std::string& path, const EncoderReport& report) {
    reports.push_back({{"file", path},
                       {"tokens", report.tokens},
                       {"first_ms", 1e3 * report.first},
                       {"prepare_ms", 1e3 * report.prepare},
                       {"encode_ms", 1e3 * report.encode}});
    if (as_json) return;
    line(format_text("{} tokens", report.tokens).c_str(),
         format_text("{:.2f} ms to prepare, {:.2f} ms to encode, {:.0f} ms the first time: {}",
                     1e3 * report.prepare, 1e3 * report.encode, 1e3 * report.first, printable(path)));
  };
  for (const std::string& path : media.images)
    tell(path, TRY(run_now(bench_picture(towers, TRY(read_image(path)), media.image_tokens, options))));
  for (const std::string& path : media.sounds)
    tell(path, TRY(run_now(bench_recording(towers, TRY(read_recording(path)), options))));
  if (as_json) {
    print({{"file", name},
           {"backend", device != nullptr ? "gpu" : "cpu"},
           {"device", describe(device.get())},
           {"repetitions", options.repetitions},
           {"encoders", reports}});
  }
  return {};
}

Status bench_single_kernels(bool tiles) {
  catch_interrupts();
  const auto device = TRY(run_now(Device::open()));
  const f64 bandwidth = TRY(run_now(read_bandwidth(*device)));
  std::printf("%s reads %s/s in a plain loop\n", printable(device->info().name).c_str(),
              human_bytes(static_cast<u64>(bandwidth)).c_str());
  return run_now(bench_kernels(*device, published_shapes(*device, tiles), [&](const KernelRate& rate) {
    const KernelShape& shape = rate.shape;
    std::printf("%-5s %5u x %-5u x %-3u %-46s %8.4f ms %8.2f TFLOP/s",
                std::string(dtype_name(shape.type)).c_str(), shape.rows, shape.cols, shape.tokens,
                rate.variant.c_str(), rate.milliseconds, rate.operations_per_second * 1e-12);
    if (shape.tokens <= kVectorTokens) std::printf(" %6.1f %%", 100 * rate.bytes_per_second / bandwidth);
    if (rate.preparation > 0) std::printf(" after %.4f ms", rate.preparation);
    std::printf("\n");
    return !interrupted();
  }));
}

void bench_every_layout(u32 repetitions) {
  constexpr u32 kCols = 5376;  // of 31B
  std::printf("rows of %u, one core   of the file   weights/s   as F16\n", kCols);
  for (const LayoutRate& rate : bench_layouts(kCols, repetitions))
    std::printf("%-22s %6.1f GB/s %8.2f G %7.2f G\n", std::string(dtype_name(rate.type)).c_str(),
                rate.file_bytes_per_second * 1e-9, rate.weights_per_second * 1e-9,
                rate.halves_per_second * 1e-9);
}

}  // namespace

void add_bench(CLI::App& app, CommandResult& result) {
  auto* command = app.add_subcommand("bench", "Measure how fast a model runs here");
  struct Options {
    std::string model;
    BackendChoice backend;
    GpuOptions gpu;
    BenchOptions bench;
    MediaOptions media;
    std::string relays = "auto";
    bool json = false, kernels = false, tiles = false, layouts = false;
  };
  auto options = std::make_shared<Options>();
  command->add_option(
      "MODEL", options->model,
      "A .gguf file or an Ollama name. With --image or --audio its encoders are measured instead\n"
      "of its text, and their own file is enough");
  command->add_flag("--kernels", options->kernels, "Instead of a model, measure kernels and their variants");
  command->add_flag("--tiles", options->tiles, "Of kernels, only products with many tokens")
      ->needs("--kernels");
  command
      ->add_flag(
          "--layouts", options->layouts,
          "Instead of a model, measure how fast weights are put in the order in which the GPU reads them")
      ->excludes("--kernels");
  constexpr u32 kMost = 1 << 20;
  const auto count = [&](const char* flags, u32& value, const char* text, u32 least) {
    command->add_option(flags, value, text)->check(CLI::Range(least, kMost))->capture_default_str();
  };
  count("-p,--prompt", options->bench.prompt, "Tokens of the prompt", 1);
  count("-n,--generate", options->bench.generate, "Tokens to generate", 1);
  count("-d,--depth", options->bench.depth, "Tokens in the context before the first is generated", 0);
  count("-r,--repetitions", options->bench.repetitions, "Figures are medians of so many", 1);
  command->add_option("--norm-in-product", options->gpu.norm_in_product,
                      "Products compute the norms before them if so many bytes suffice; 0: none do");
  command
      ->add_option("--relays", options->relays,
                   "Products that follow each other as one dispatch: on or off; trial: whichever is found\n"
                   "faster; auto: whichever was, and on NVIDIA's GPUs a trial if there was none")
      ->check(CLI::IsMember(kRelaysNames))
      ->capture_default_str();
  command->add_flag("--file-layout", options->gpu.file_layout,
                    "Weights lie on the GPU as in the file, not as products read them best");
  command->add_flag("--json", options->json, "Print JSON");
  add_media_options(*command, options->media);
  add_backend_option(*command, options->backend);
  command->callback([options, &result] {
    if (!options->kernels && !options->layouts && options->model.empty())
      throw CLI::RequiredError("MODEL, --kernels or --layouts");
    if (options->layouts) {
      bench_every_layout(options->bench.repetitions);
    } else if (options->kernels) {
      result = bench_single_kernels(options->tiles);
    } else if (!options->media.empty()) {
      result =
          bench_encoders(options->model, options->media, options->backend, options->bench, options->json);
    } else {
      options->gpu.relays = *relays_named(options->relays);
      result = bench_model(options->model, options->backend, options->gpu, options->bench, options->json);
    }
  });
}

}  // namespace bezel
