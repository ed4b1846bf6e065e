#include "io/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace bezel {
namespace {

std::string partial(const std::string& path) { return path + ".partial"; }

}  // namespace

Result<OutputFile> OutputFile::create(const std::string& path) {
  OutputFile file;
  file.path_ = path;
  file.fd_ = open(partial(path).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file.fd_ < 0) {
    return fail(ErrorKind::kIo, "{} cannot be created: {}.", partial(path), std::strerror(errno));
  }
  return file;
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

OutputFile::~OutputFile() {
  if (fd_ < 0) return;
  close(fd_);
  unlink(partial(path_).c_str());
}

Status OutputFile::write(Bytes bytes) {
  CHECK(fd_ >= 0);
  while (!bytes.empty()) {
    // Linux moves at most 2 GiB a call.
    const std::size_t want = std::min<std::size_t>(bytes.size(), 1u << 30);
    const auto put = ::write(fd_, bytes.data(), want);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return fail(ErrorKind::kIo, "Writing {} failed: {}.", partial(path_), std::strerror(errno));
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
  return {};
}

Status OutputFile::finish() {
  CHECK(fd_ >= 0);
  // The data must be on the disk before the name is: a crash in between would leave a file of zeros.
  bool good = fsync(fd_) == 0;
  int error = errno;
  if (close(std::exchange(fd_, -1)) != 0 && good) {
    good = false;
    error = errno;
  }
  if (good && std::rename(partial(path_).c_str(), path_.c_str()) != 0) {
    good = false;
    error = errno;
  }
  if (good) return {};
  unlink(partial(path_).c_str());
  return fail(ErrorKind::kIo, "{} cannot be completed: {}.", path_, std::strerror(error));
}

}  // namespace bezel
