#include "io/files.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "io/source.h"

namespace bezel {
namespace {

std::unexpected<Error> refused(const std::string& path, int reason) {
  // ENOTDIR: something on the way is a file, so nothing can exist below it.
  const bool absent = reason == ENOENT || reason == ENOTDIR;
  return fail(absent ? ErrorKind::kNotFound : ErrorKind::kIo, "{} cannot be opened: {}.", path,
              std::strerror(reason));
}

}  // namespace

bool is_file(const std::string& path) {
  struct stat info{};
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

bool is_folder(const std::string& path) {
  struct stat info{};
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

Result<u64> file_size(const std::string& path) {
  struct stat info{};
  if (stat(path.c_str(), &info) != 0) return refused(path, errno);
  if (!S_ISREG(info.st_mode)) return invalid("{} is not a file.", path);
  return static_cast<u64>(info.st_size);
}

Result<std::vector<std::string>> list_folder(const std::string& path) {
  DIR* folder = opendir(path.c_str());
  if (folder == nullptr) return refused(path, errno);
  std::vector<std::string> names;
  while (const dirent* entry = readdir(folder)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  closedir(folder);
  std::ranges::sort(names);
  return names;
}

Result<std::string> read_text(const std::string& path, u64 max_bytes) {
  const u64 size = TRY(file_size(path));  // before opening: to open a pipe would wait
  if (size > max_bytes) return invalid("{} has {} bytes; at most {} are read.", path, size, max_bytes);
  auto source = TRY(open_file(path));
  std::string text(static_cast<std::size_t>(size), '\0');
  TRY(run_now(source->read(0, std::as_writable_bytes(std::span(text)))));
  return text;
}

}  // namespace bezel
