#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <filesystem>

#include "api/cli.h"
#include "base/format_text.h"
#include "io/resolve.h"
#include "run/tuning_file.h"

namespace bezel {
namespace {

std::atomic<bool> g_interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free);  // a signal handler may touch nothing else

}  // namespace

std::string checkout_file(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (int up = 0; up < 4 && !folder.empty(); ++up, folder = folder.parent_path()) {
    if (fs::exists(folder / path, error)) return (folder / path).string();
  }
  return {};
}

void catch_interrupts(bool kills_too) {
  struct sigaction action{};
  action.sa_handler = [](int) {
    if (g_interrupted.exchange(true)) _exit(130);
  };
  sigaction(SIGINT, &action, nullptr);  // without SA_RESTART: waiting for a line ends too
  if (kills_too) sigaction(SIGTERM, &action, nullptr);
}
bool interrupted() { return g_interrupted; }
void clear_interrupt() { g_interrupted = false; }

Result<OpenedModel> open_model(const std::string& path_or_name, const std::string& projector) {
  const ModelFiles files = TRY(resolve_model(path_or_name));
  OpenedModel model{.file = TRY(open_gguf(files.model)), .hints = {}, .system = {}, .projector = {}};
  const std::string beside = projector.empty() ? files.projector.value_or("") : projector;
  if (!beside.empty()) model.projector = TRY(open_gguf(beside));
  if (files.ollama) {
    model.hints = {.renderer = files.ollama->renderer,
                   .model_name = files.ollama->name,
                   .parameter_size = files.ollama->model_type,
                   .ollama_params = files.ollama->params};
    model.system = files.ollama->system;
  }
  return model;
}

namespace {

// A library that looks for drivers complains on stderr where there are none; with "auto" that is no news.
class QuietErrors {
 public:
  QuietErrors() : saved_(dup(STDERR_FILENO)) {
    const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (null >= 0) {
      dup2(null, STDERR_FILENO);
      close(null);
    }
  }
  QuietErrors(const QuietErrors&) = delete;
  QuietErrors& operator=(const QuietErrors&) = delete;
  ~QuietErrors() {
    if (saved_ < 0) return;
    dup2(saved_, STDERR_FILENO);
    close(saved_);
  }

 private:
  int saved_;
};

Result<std::unique_ptr<Device>> open_device(bool quietly) {
  std::optional<QuietErrors> quiet;
  if (quietly) quiet.emplace();
  return run_now(Device::open());
}

}  // namespace

Result<std::unique_ptr<Device>> choose_device(const BackendChoice& choice) {
  if (choice.name == "cpu") return nullptr;
  auto device = open_device(choice.name == "auto");
  if (!device && choice.name == "auto") return nullptr;
  return device;
}

Result<LoadedEngine> load_engine(OpenedModel model, const BackendChoice& choice, LoadOptions options) {
  LoadedEngine loaded{.device = TRY(choose_device(choice)), .engine = nullptr};
  options.device = loaded.device.get();
  if (options.device != nullptr) {
    options.gpu.tuning = load_tuning();
    // Where it cannot be kept it is found out again.
    options.gpu.learned = [device = options.device](const Tuning& news) {
      [[maybe_unused]] const Status kept = keep_tuning(news, device->info());
    };
  }
  options.kv = kv_type_named(choice.kv).value_or(KvType::kF32);
  if (choice.per_layer == "device") options.per_layer_table = PerLayerTable::kDevice;
  if (choice.per_layer == "source") options.per_layer_table = PerLayerTable::kSource;
  const bool show = isatty(STDERR_FILENO) != 0;
  int shown = -1;
  options.progress = [&, tell = std::move(options.progress)](u64 done, u64 total) {
    const int percent = static_cast<int>(done * 100 / std::max<u64>(1, total));
    if (show && percent != shown) {
      std::fprintf(stderr, "\rLoading %s  %3d %%", human_bytes(total).c_str(), percent);
    }
    shown = percent;
    return !interrupted() && (!tell || tell(done, total));
  };
  auto engine = run_now(Engine::load(std::move(model.file), std::move(model.hints), std::move(options),
                                     std::move(model.projector)));
  if (show) std::fprintf(stderr, "\r\033[K");
  loaded.engine = TRY(std::move(engine));
  return loaded;
}

void add_backend_option(CLI::App& command, BackendChoice& choice) {
  command
      .add_option("--backend", choice.name, "Where to compute: cpu, gpu, or auto for the GPU if there is one")
      ->check(CLI::IsMember({"auto", "cpu", "gpu"}))
      ->capture_default_str();
  command
      .add_option("--kv", choice.kv,
                  "How to keep keys and values: f32; f16, half the memory; or q8, little more than a quarter")
      ->check(CLI::IsMember({"f32", "f16", "q8"}))
      ->capture_default_str();
  command
      .add_option(
          "--per-layer", choice.per_layer,
          "Where to keep the table of per-layer embeddings: device, with the other weights; source, in\n"
          "the file, read row by row; or auto, which is device where there is room")
      ->check(CLI::IsMember({"auto", "device", "source"}))
      ->capture_default_str();
}

std::string printable(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (static_cast<u8>(c) < 0x20 || c == 0x7F) {
      out += format_text("\\x{:02x}", static_cast<u8>(c));
    } else {
      out += c;
    }
  }
  return out;
}

std::string human_bytes(u64 bytes) {
  if (bytes < 1000) return format_text("{} B", bytes);
  f64 value = static_cast<f64>(bytes);
  const char* unit = "";
  for (const char* next : {"kB", "MB", "GB", "TB", "PB"}) {
    unit = next;
    value /= 1000;
    if (value < 999.5) break;
  }
  return format_text("{:.{}f} {}", value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0, unit);
}

}  // namespace bezel
