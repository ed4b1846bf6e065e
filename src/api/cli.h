// The commands of the `bezel` program. Each adds itself to the parser and runs when chosen.
#pragma once
#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "run/engine.h"

namespace bezel {

// Set by the chosen command; main() turns it into the exit code.
using CommandResult = std::optional<Status>;

void add_inspect(CLI::App& app, CommandResult& result);
void add_tokenize(CLI::App& app, CommandResult& result);
void add_eval(CLI::App& app, CommandResult& result);
void add_run(CLI::App& app, CommandResult& result);
void add_serve(CLI::App& app, CommandResult& result);
void add_synth(CLI::App& app, CommandResult& result);
void add_bench(CLI::App& app, CommandResult& result);
void add_tune(CLI::App& app, CommandResult& result);

// The file of a model, and what the Ollama store says about it where it came from there.
struct OpenedModel {
  Gguf file;
  EngineHints hints;
  std::string system;             // Ollama's default system message, or empty
  std::optional<Gguf> projector;  // encoders in a file of their own
};
// `projector` is the file of the encoders, where it is not the one that the store names; it may be empty.
Result<OpenedModel> open_model(const std::string& path_or_name, const std::string& projector = {});

// Pictures, recordings and videos of the command line, in the order of the kinds.
struct MediaOptions {
  std::vector<std::string> images, sounds, videos;
  std::string projector;
  u32 image_tokens = 0;
  f64 fps = 1;
  bool empty() const { return images.empty() && sounds.empty() && videos.empty(); }
};
void add_media_options(CLI::App& command, MediaOptions& media);
Result<Image> read_image(const std::string& path);
Result<Clip> read_recording(const std::string& path);
Result<Medium> look_at(Towers& towers, const std::string& path, const MediaOptions& media);
Result<Medium> listen_to(Towers& towers, const std::string& path);
// A folder of frames, by name, `fps` of them a second.
Result<Medium> watch(Towers& towers, const std::string& folder, const MediaOptions& media);

// A file of the checkout that the program lies in, such as "models/nano.gguf"; empty when there is none.
std::string checkout_file(const std::string& path);

// Where to compute: --backend cpu, gpu, or auto, which is the GPU where there is one.
struct BackendChoice {
  std::string name = "auto";
  std::string kv = "f32";
  std::string per_layer = "auto";
};
void add_backend_option(CLI::App& command, BackendChoice& choice);

// Null for the CPU.
Result<std::unique_ptr<Device>> choose_device(const BackendChoice& choice);

// The device, if any, lives as long as the engine.
struct LoadedEngine {
  std::unique_ptr<Device> device;
  std::unique_ptr<Engine> engine;
};

// With a progress line on a terminal, beside `options.progress`.
Result<LoadedEngine> load_engine(OpenedModel model, const BackendChoice& choice, LoadOptions options = {});

// Ctrl-C sets a flag instead of ending the program; a second one ends it. So does `kill`, where asked for.
void catch_interrupts(bool kills_too = false);
bool interrupted();
void clear_interrupt();

std::string human_bytes(u64 bytes);
// Text from a file, safe to show: control characters as \xNN, so that it cannot rewrite the terminal.
std::string printable(std::string_view text);

}  // namespace bezel
