#include <cstdlib>
#include <filesystem>
#include <span>

#include "io/files.h"
#include "io/output_file.h"
#include "run/tuning_file.h"

namespace bezel {

std::string tuning_path() {
  const auto folder = [](const char* variable) {
    const char* value = std::getenv(variable);
    return value != nullptr && *value == '/' ? std::string(value) : std::string();
  };
  if (const std::string caches = folder("XDG_CACHE_HOME"); !caches.empty())
    return caches + "/bezel/tuning.json";
  const std::string home = folder("HOME");
  return home.empty() ? home : home + "/.cache/bezel/tuning.json";
}

std::string load_tuning() {
  const std::string path = tuning_path();
  if (path.empty()) return {};
  return read_text(path, 1 << 20).value_or("");
}

Status save_tuning(std::string_view text) {
  const std::string path = tuning_path();
  if (path.empty()) return fail(ErrorKind::kNotFound, "There is no folder for caches: HOME is not set.");
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  OutputFile file = TRY(OutputFile::create(path));
  TRY(file.write(std::as_bytes(std::span(text))));
  return file.finish();
}

Status keep_tuning(const Tuning& news, const DeviceInfo& info) {
  Tuning kept = Tuning::parse(load_tuning(), info);
  kept.add(news);
  return save_tuning(kept.text(info));
}

}  // namespace bezel
