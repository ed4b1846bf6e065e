// WebGPU through the host: web/src/gpu.ts holds the objects, this file the numbers that name them.
#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/check.h"
#include "base/host_call_web.h"
#include "gpu/device.h"

namespace bezel {

// Numbers that may exceed 32 bits cross as f64, exact up to 2^53.
HOST_IMPORT("gpu", "open") i32 gpu_open(const char* options, u32 length, HostCall* call);
HOST_IMPORT("gpu", "close") void gpu_close(u32 device);
HOST_IMPORT("gpu", "lose") void gpu_lose(u32 device);
HOST_IMPORT("gpu", "make_buffer") u32 gpu_make_buffer(u32 device, f64 bytes, const char* label, u32 length);
HOST_IMPORT("gpu", "destroy_buffer") void gpu_destroy_buffer(u32 device, u32 buffer);
HOST_IMPORT("gpu", "write")
void gpu_write(u32 device, u32 buffer, f64 offset, const std::byte* bytes, u32 length);
// `program` runs first, unless it is 0.
HOST_IMPORT("gpu", "start_read")
i32 gpu_start_read(u32 device, u32 program, u32 buffer, f64 offset, u32 length);
HOST_IMPORT("gpu", "finish_read") i32 gpu_finish_read(u32 device, u32 read, std::byte* out, HostCall* call);
HOST_IMPORT("gpu", "drop_read") void gpu_drop_read(u32 device, u32 read);
HOST_IMPORT("gpu", "pipeline")
u32 gpu_pipeline(u32 device, const char* wgsl, u32 length, const char* label, u32 label_length);
HOST_IMPORT("gpu", "make_program") u32 gpu_make_program(u32 device, const u32* words, u32 count);
HOST_IMPORT("gpu", "destroy_program") void gpu_destroy_program(u32 device, u32 program);
HOST_IMPORT("gpu", "run") i32 gpu_run(u32 device, u32 program);
HOST_IMPORT("gpu", "profile") i32 gpu_profile(u32 device, u32 program, u64* out, HostCall* call);
HOST_IMPORT("gpu", "settle") i32 gpu_settle(u32 device, HostCall* call);

namespace {

using nlohmann::json;

u32 length_of(std::string_view text) { return static_cast<u32>(text.size()); }

class WebDevice final : public Device {
 public:
  WebDevice(u32 device, DeviceInfo info, u64 max_memory)
      : device_(device), info_(std::move(info)), max_memory_(max_memory) {}
  ~WebDevice() override { gpu_close(device_); }

  const DeviceInfo& info() const override { return info_; }
  u64 allocated() const override { return allocated_; }
  DeviceCounts counts() const override {
    return {static_cast<u32>(buffers_.size()), static_cast<u32>(program_sizes_.size()), pipelines_,
            compiled_at_once_};
  }
  void lose() override { gpu_lose(device_); }

  Result<Buffer> make_buffer(u64 bytes, std::string_view label) override {
    if (bytes == 0 || bytes > info_.max_buffer) {
      return fail(ErrorKind::kMemory,
                  "A buffer of {} bytes for {} is not possible: the GPU's limit is {} bytes.", bytes, label,
                  info_.max_buffer);
    }
    const u64 rounded = (bytes + 3) / 4 * 4;
    if (max_memory_ > 0 && bytes > max_memory_ - std::min(allocated_, max_memory_)) {
      return fail(ErrorKind::kMemory, "There is no room for {} bytes for {}: {} of {} bytes are taken.",
                  bytes, label, allocated_, max_memory_);
    }
    const u32 id = gpu_make_buffer(device_, static_cast<f64>(rounded), label.data(), length_of(label));
    buffers_[id] = rounded;
    allocated_ += rounded;
    return Buffer(*this, id, rounded);
  }

  void write(const Buffer& buffer, u64 offset, Bytes bytes) override {
    CHECK(offset % 4 == 0 && bytes.size() % 4 == 0 && offset + bytes.size() <= buffer.bytes());
    gpu_write(device_, buffer.id(), static_cast<f64>(offset), bytes.data(), static_cast<u32>(bytes.size()));
  }

  Result<Download> start_read(BufferView from, const Program* first) override {
    const i32 id = gpu_start_read(device_, first == nullptr ? 0 : first->id(), from.buffer,
                                  static_cast<f64>(from.offset), static_cast<u32>(from.bytes));
    TRY(host_status(id));
    return Download(*this, static_cast<u32>(id), from.bytes);
  }

  Result<u32> pipeline(std::string_view wgsl, std::string_view label) override {
    const u32 id = gpu_pipeline(device_, wgsl.data(), length_of(wgsl), label.data(), length_of(label));
    if (id < pipelines_) return id;
    pipelines_ = id + 1;
    compiled_at_once_ = std::max(compiled_at_once_, ++asked_);
    return id;
  }

  Result<Program> make_program(std::span<const Dispatch> dispatches) override {
    // For each dispatch: pipeline, grid, words of params, bindings, the params, the bindings.
    std::vector<u32> words;
    for (const Dispatch& d : dispatches) {
      CHECK(d.params.size() % 4 == 0);
      const std::size_t param_words = d.params.size() / 4;
      words.insert(words.end(), {d.pipeline, d.grid.x, d.grid.y, d.grid.z, static_cast<u32>(param_words),
                                 static_cast<u32>(d.bindings.size())});
      words.resize(words.size() + param_words);
      std::memcpy(words.data() + words.size() - param_words, d.params.data(), d.params.size());
      for (const BufferView& view : d.bindings) {
        words.push_back(view.buffer);
        for (const u64 number : {view.offset, view.bytes}) {
          words.push_back(static_cast<u32>(number));
          words.push_back(static_cast<u32>(number >> 32));
        }
      }
    }
    const u32 id = gpu_make_program(device_, words.data(), static_cast<u32>(words.size()));
    asked_ = 0;
    program_sizes_[id] = static_cast<u32>(dispatches.size());
    return Program(*this, id);
  }

  Status run(const Program& program) override { return host_status(gpu_run(device_, program.id())); }

  Task<Result<std::vector<u64>>> profile(const Program& program) override {
    if (!info_.timestamps)
      co_return fail(ErrorKind::kUnsupported, "The GPU {} has no timestamps.", info_.name);
    std::vector<u64> times(program_sizes_.at(program.id()));
    CO_TRY(host_status(co_await host_call(
        [&](HostCall* call) { return gpu_profile(device_, program.id(), times.data(), call); })));
    co_return times;
  }

  Task<Status> settle() override {
    co_return host_status(co_await host_call([&](HostCall* call) { return gpu_settle(device_, call); }));
  }

 private:
  void destroy_buffer(u32 id) override {
    gpu_destroy_buffer(device_, id);
    const auto found = buffers_.find(id);
    allocated_ -= found->second;
    buffers_.erase(found);
  }
  void destroy_program(u32 id) override {
    gpu_destroy_program(device_, id);
    program_sizes_.erase(id);
  }
  Task<Status> finish_read(u32 id, MutableBytes out) override {
    co_return host_status(
        co_await host_call([&](HostCall* call) { return gpu_finish_read(device_, id, out.data(), call); }));
  }
  void drop_read(u32 id) override { gpu_drop_read(device_, id); }

  u32 device_;
  DeviceInfo info_;
  u64 allocated_ = 0, max_memory_;
  u32 pipelines_ = 0;
  u32 asked_ = 0, compiled_at_once_ = 0;        // pipelines since the last program, and the most of them
  std::unordered_map<u32, u64> buffers_;        // their bytes
  std::unordered_map<u32, u32> program_sizes_;  // dispatches
};

}  // namespace

Task<Result<std::unique_ptr<Device>>> Device::open(DeviceOptions options) {
  const std::string wanted = json{
      {"f16", options.f16},
      {"subgroups", options.subgroups},
      {"timestamps", options.timestamps},
      {"subgroup_matrix", options.subgroup_matrix},
      {"max_binding", options.max_binding},
      {"max_storage_bindings", options.max_storage_bindings},
      {"max_invocations",
       options.max_invocations}}.dump();
  const i32 device =
      co_await host_call([&](HostCall* call) { return gpu_open(wanted.data(), length_of(wanted), call); });
  CO_TRY(host_status(device));
  const json about = json::parse(take_host_message(), nullptr, false);
  CHECK(about.is_object());
  DeviceInfo info;
  const auto take = [&](const char* key, auto& out) { about.at(key).get_to(out); };
  take("name", info.name);
  take("vendor", info.vendor);
  take("backend", info.backend);
  take("driver", info.driver);
  take("software", info.software);
  take("max_buffer", info.max_buffer);
  take("max_binding", info.max_binding);
  take("max_storage_bindings", info.max_storage_bindings);
  take("max_invocations", info.max_invocations);
  take("max_workgroup_memory", info.max_workgroup_memory);
  take("max_groups", info.max_groups);
  take("storage_alignment", info.storage_alignment);
  take("uniform_alignment", info.uniform_alignment);
  take("f16", info.f16);
  take("subgroups", info.subgroups);
  take("timestamps", info.timestamps);
  take("subgroup_matrix", info.subgroup_matrix);
  co_return std::make_unique<WebDevice>(static_cast<u32>(device), std::move(info), options.max_memory);
}

}  // namespace bezel
