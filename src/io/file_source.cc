#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "io/source.h"

namespace bezel {
namespace {

class FileSource final : public Source {
 public:
  FileSource(int fd, u64 size, std::string path) : fd_(fd), size_(size), path_(std::move(path)) {}
  FileSource(const FileSource&) = delete;
  FileSource& operator=(const FileSource&) = delete;
  ~FileSource() override { close(fd_); }

  u64 size() const override { return size_; }
  const std::string& name() const override { return path_; }
  Task<Status> read(u64 offset, MutableBytes out) override {
    if (offset > size_ || out.size() > size_ - offset) co_return past_the_end(*this, offset, out.size());
    while (!out.empty()) {
      // Linux moves at most 2 GiB a call.
      const std::size_t want = std::min<std::size_t>(out.size(), 1u << 30);
      const auto got = pread(fd_, out.data(), want, static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) co_return fail(ErrorKind::kIo, "Reading {} failed: {}.", path_, std::strerror(errno));
      if (got == 0) co_return fail(ErrorKind::kIo, "{} became shorter while it was being read.", path_);
      offset += static_cast<u64>(got);
      out = out.subspan(static_cast<std::size_t>(got));
    }
    co_return Status{};
  }

 private:
  int fd_;
  u64 size_;
  std::string path_;
};

}  // namespace

Result<std::unique_ptr<Source>> open_file(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    const auto kind = errno == ENOENT ? ErrorKind::kNotFound : ErrorKind::kIo;
    return fail(kind, "{} cannot be opened: {}.", path, std::strerror(errno));
  }
  struct stat info{};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    close(fd);
    return invalid("{} is not a file.", path);
  }
  return std::make_unique<FileSource>(fd, static_cast<u64>(info.st_size), path);
}

}  // namespace bezel
