#include <cstring>

#include "io/source.h"

namespace bezel {
namespace {

class MemorySource final : public Source {
 public:
  MemorySource(std::vector<std::byte> bytes, std::string name)
      : bytes_(std::move(bytes)), name_(std::move(name)) {}

  u64 size() const override { return bytes_.size(); }
  const std::string& name() const override { return name_; }
  Task<Status> read(u64 offset, MutableBytes out) override {
    if (offset > size() || out.size() > size() - offset) co_return past_the_end(*this, offset, out.size());
    if (!out.empty()) std::memcpy(out.data(), bytes_.data() + offset, out.size());
    co_return Status{};
  }

 private:
  std::vector<std::byte> bytes_;
  std::string name_;
};

}  // namespace

std::unexpected<Error> past_the_end(const Source& source, u64 offset, u64 length) {
  return invalid("Reading {} bytes at offset {} of {} goes past its end ({} bytes).", length, offset,
                 source.name(), source.size());
}

std::unique_ptr<Source> memory_source(std::vector<std::byte> bytes, std::string name) {
  return std::make_unique<MemorySource>(std::move(bytes), std::move(name));
}

}  // namespace bezel
