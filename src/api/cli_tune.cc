#include <algorithm>
#include <cstdio>
#include <map>

#include "api/cli.h"
#include "base/format_text.h"
#include "run/tune.h"
#include "run/tuning_file.h"

namespace bezel {
namespace {

void print(const TuneReport& report) {
  std::printf("%-38s %5s %10s %10s %7s  %s\n", "product", "times", "us before", "us now", "gain", "variant");
  const auto line = [](const std::string& name, const std::string& times, f64 before, f64 now,
                       const std::string& note) {
    std::printf("%-38s %5s %10.2f %10.2f %5.1f %%  %s\n", name.c_str(), times.c_str(), before, now,
                100 * (1 - now / std::max(before, 1e-9)), note.c_str());
  };
  std::map<u32, std::pair<f64, f64>> totals;  // by tokens
  for (const TunedProduct& product : report.products) {
    const ProductShape& shape = product.shape;
    const std::string tokens = shape.tokens == 0 ? "" : format_text(" x {}", shape.tokens);
    line(format_text("{} {} {} x {}{}", product_name(shape.kind), dtype_name(shape.type), shape.rows,
                     shape.cols, tokens),
         std::to_string(product.dispatches), product.before, product.after,
         product.variant.empty() ? "as it was" : product.variant);
    totals[shape.tokens].first += product.before * product.dispatches;
    totals[shape.tokens].second += product.after * product.dispatches;
  }
  for (const auto& [tokens, time] : totals)
    line(tokens == 0 ? "all of a token" : format_text("all of {} tokens of a prompt", tokens), "", time.first,
         time.second, "");
  std::printf("%u of %u variants tried\n", report.tried, report.variants);
}

Status tune_model(const std::string& name, const BackendChoice& backend, TuneOptions options) {
  catch_interrupts();
  options.go_on = [] { return !interrupted(); };
  const auto loaded = TRY(load_engine(TRY(open_model(name)), backend));
  if (loaded.device == nullptr)
    return fail(ErrorKind::kUnsupported, "There is no GPU here to tune kernels for.");
  const DeviceInfo& info = loaded.device->info();
  const TuneReport report = TRY(run_now(tune(loaded.engine->backend(), info, std::move(options))));
  print(report);
  const Tuning all = report.added_to(Tuning::parse(load_tuning(), info));
  if (const Status saved = save_tuning(all.text(info)); saved) {
    std::printf("Kept in %s.\n", printable(tuning_path()).c_str());
  } else {
    std::printf("It could not be kept: %s\n", saved.error().message.c_str());
  }
  return {};
}

}  // namespace

void add_tune(CLI::App& app, CommandResult& result) {
  auto* command =
      app.add_subcommand("tune", "Find the fastest kernels for a model on this GPU, and keep them");
  struct Options {
    std::string model;
    BackendChoice backend;
    TuneOptions tune;
  };
  auto options = std::make_shared<Options>();
  command->add_option("MODEL", options->model, "A .gguf file or an Ollama name")->required();
  command->add_flag("--force", options->tune.software, "Even where the GPU is software");
  command
      ->add_option("--seconds", options->tune.seconds,
                   "How long to go on trying, of decoding and of prompts each")
      ->check(CLI::Range(0.0, 600.0))
      ->capture_default_str();
  add_backend_option(*command, options->backend);
  command->callback(
      [options, &result] { result = tune_model(options->model, options->backend, options->tune); });
}

}  // namespace bezel
