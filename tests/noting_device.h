// A device that only notes what it is given: shows what would run on GPUs that tests have not got.
#pragma once
#include <map>

#include "gpu/device.h"

namespace bezel {

class NotingDevice final : public Device {
 public:
  explicit NotingDevice(DeviceInfo info) : info_(std::move(info)) {}
  const DeviceInfo& info() const override { return info_; }
  Result<Buffer> make_buffer(u64 bytes, std::string_view) override { return Buffer(*this, ++made_, bytes); }
  void write(const Buffer&, u64, Bytes) override {}
  Result<Download> start_read(BufferView from, const Program*) override {
    return Download(*this, 1, from.bytes);
  }
  Result<u32> pipeline(std::string_view wgsl, std::string_view label) override {
    texts.emplace(wgsl, label);
    kernels.emplace_back(wgsl);
    return static_cast<u32>(kernels.size() - 1);
  }
  Result<Program> make_program(std::span<const Dispatch> dispatches) override {
    program.assign(dispatches.begin(), dispatches.end());
    return Program(*this, 1);
  }
  Status run(const Program&) override { return {}; }
  Task<Result<std::vector<u64>>> profile(const Program&) override { co_return std::vector<u64>{}; }
  Task<Status> settle() override { co_return Status{}; }
  u64 allocated() const override { return 0; }
  DeviceCounts counts() const override { return {}; }
  void lose() override {}
  void destroy_buffer(u32) override {}
  void destroy_program(u32) override {}
  Task<Status> finish_read(u32, MutableBytes) override { co_return Status{}; }
  void drop_read(u32) override {}

  std::map<std::string, std::string> texts;  // and a label
  std::vector<std::string> kernels;          // by number
  std::vector<Dispatch> program;             // the last one made

 private:
  DeviceInfo info_;
  u32 made_ = 0;
};

inline DeviceInfo large_gpu() {
  DeviceInfo info;
  info.vendor = "nvidia";
  info.max_buffer = info.max_binding = u64{1} << 31;
  info.max_storage_bindings = 10;
  info.max_invocations = 1024;
  info.max_workgroup_memory = 48 << 10;
  info.max_groups = 65535;
  info.f16 = info.subgroups = info.subgroup_matrix = info.integer_dots = true;
  return info;
}

}  // namespace bezel
