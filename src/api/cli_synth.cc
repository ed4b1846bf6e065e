#include <unistd.h>

#include <cstdio>

#include "api/cli.h"
#include "model/synth.h"

namespace bezel {
namespace {

std::string joined(const std::vector<std::string_view>& names) {
  std::string out;
  for (const auto name : names) out.append(out.empty() ? "" : ", ").append(name);
  return out;
}

Status synth(const SynthOptions& options, const std::string& path) {
  catch_interrupts();
  const bool show = isatty(STDERR_FILENO) != 0;
  const Status status = write_synthetic_model(path, options, [&](u64 done, u64 total) {
    if (show)
      std::fprintf(stderr, "\rWriting %s  %3d %%", human_bytes(total).c_str(),
                   static_cast<int>(done * 100 / total));
    return !interrupted();
  });
  if (show) std::fprintf(stderr, "\r\033[K");
  return status;
}

}  // namespace

void add_synth(CLI::App& app, CommandResult& result) {
  auto* command =
      app.add_subcommand("synth", "Write a model with random weights and the exact shape of a real one");
  struct Options {
    SynthOptions synth;
    std::string path;
  };
  auto options = std::make_shared<Options>();
  command->add_option("PRESET", options->synth.preset, "One of " + joined(synth_presets()))->required();
  command->add_option("-o,--output", options->path, "The file to write")->required();
  command->add_option("--quant", options->synth.quant, "One of " + joined(synth_quants()))
      ->capture_default_str();
  command->add_option("--seed", options->synth.seed, "Another seed, another model")->capture_default_str();
  command->callback([options, &result] { result = synth(options->synth, options->path); });
}

}  // namespace bezel
