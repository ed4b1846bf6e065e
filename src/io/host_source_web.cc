#include "io/host_source_web.h"

#include "base/host_call_web.h"

namespace bezel {

HOST_IMPORT("source", "read")
i32 source_read(u32 id, f64 offset, std::byte* out, u32 length, HostCall* call);
HOST_IMPORT("source", "close") void source_close(u32 id);

namespace {

class HostSource final : public Source {
 public:
  HostSource(u32 id, u64 size, std::string name) : id_(id), size_(size), name_(std::move(name)) {}
  ~HostSource() override { source_close(id_); }
  u64 size() const override { return size_; }
  const std::string& name() const override { return name_; }

  Task<Status> read(u64 offset, MutableBytes out) override {
    if (offset > size_ || out.size() > size_ - offset) co_return past_the_end(*this, offset, out.size());
    if (out.empty()) co_return Status{};
    co_return host_status(co_await host_call([&](HostCall* call) {
      return source_read(id_, static_cast<f64>(offset), out.data(), static_cast<u32>(out.size()), call);
    }));
  }

 private:
  u32 id_;
  u64 size_;
  std::string name_;
};

}  // namespace

std::unique_ptr<Source> host_source(u32 id, u64 size, std::string name) {
  return std::make_unique<HostSource>(id, size, std::move(name));
}

}  // namespace bezel
