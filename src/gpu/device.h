// A GPU: buffers, compiled kernels, and programs of dispatches that are built once and run many times. The
// only interface to WebGPU; natively it is Dawn, on the web the browser.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/result.h"
#include "base/task.h"
#include "base/types.h"
#include "gpu/binding.h"

namespace bezel {

// What the adapter offers, after DeviceOptions took away what the caller does not want.
struct DeviceInfo {
  std::string name, vendor, backend;
  std::string driver;  // and its version, as far as it is told
  bool software = false;
  u64 max_buffer = 0;   // bytes of one buffer
  u64 max_binding = 0;  // bytes of one storage binding
  u32 max_storage_bindings = 0;
  u32 max_invocations = 0;  // threads of a workgroup
  u32 max_workgroup_memory = 0;
  u32 max_groups = 0;  // workgroups along one dimension
  u32 storage_alignment = 256;
  u32 uniform_alignment = 256;
  bool f16 = false, subgroups = false, timestamps = false;
  bool subgroup_matrix = false;  // experimental: f16 tiles multiplied by a whole subgroup, sums in f32
};

// Limits and features to do without: how a small adapter is imitated. Zero: whatever the adapter has.
struct DeviceOptions {
  bool f16 = true, subgroups = true, timestamps = true, subgroup_matrix = true;
  u64 max_binding = 0;
  u64 max_memory = 0;  // bytes of all buffers together
  u32 max_storage_bindings = 0, max_invocations = 0;
};

// What exists on a device now.
struct DeviceCounts {
  u32 buffers = 0, programs = 0, pipelines = 0;
  u32 compiled_at_once = 0;  // the most pipelines that were asked for before any of them was waited for
};

class Device;

// GPU memory; freed with the object, not when some collector finds it. The device must outlive it.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Device& device, u32 id, u64 bytes) : device_(&device), id_(id), bytes_(bytes) {}
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Buffer();

  u32 id() const { return id_; }
  u64 bytes() const { return bytes_; }
  BufferView view() const { return {id_, 0, bytes_}; }
  BufferView view(u64 offset, u64 bytes) const { return {id_, offset, bytes}; }

 private:
  void swap(Buffer& other) {
    std::swap(device_, other.device_);
    std::swap(id_, other.id_);
    std::swap(bytes_, other.bytes_);
  }
  Device* device_ = nullptr;
  u32 id_ = 0;
  u64 bytes_ = 0;
};

// One launch of a kernel. Binding 0 is the uniform `params`, storage bindings follow in order.
struct Dispatch {
  u32 pipeline = 0;
  std::vector<std::byte> params;
  std::vector<BufferView> bindings;
  Grid grid;
};

// Dispatches with their bind groups and parameters, ready to be replayed.
class Program {
 public:
  Program() = default;
  Program(Device& device, u32 id) : device_(&device), id_(id) {}
  Program(Program&& other) noexcept { swap(other); }
  Program& operator=(Program&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Program();
  u32 id() const { return id_; }

 private:
  void swap(Program& other) {
    std::swap(device_, other.device_);
    std::swap(id_, other.id_);
  }
  Device* device_ = nullptr;
  u32 id_ = 0;
};

// Bytes on their way from the GPU: as they are after all that was run before, whatever is run later.
// Destroying it gives them up. The device must outlive it.
class Download {
 public:
  Download() = default;
  Download(Device& device, u32 id, u64 bytes) : device_(&device), id_(id), bytes_(bytes) {}
  Download(Download&& other) noexcept { swap(other); }
  Download& operator=(Download&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Download();

  u64 bytes() const { return bytes_; }
  // Waits for them; once. `out` has just their size.
  Task<Status> finish(MutableBytes out);

 private:
  void swap(Download& other) {
    std::swap(device_, other.device_);
    std::swap(id_, other.id_);
    std::swap(bytes_, other.bytes_);
  }
  Device* device_ = nullptr;
  u32 id_ = 0;
  u64 bytes_ = 0;
};

class Device {
 public:
  static Task<Result<std::unique_ptr<Device>>> open(DeviceOptions options = {});
  virtual ~Device() = default;

  virtual const DeviceInfo& info() const = 0;

  // Zeroed, and rounded up to a multiple of 4: WebGPU binds and writes nothing else. kMemory when the device
  // has no room; larger than info().max_buffer is an error too. A browser answers later: there, what is wrong
  // with buffers, kernels and programs comes out of the next settle(), run() or read().
  virtual Result<Buffer> make_buffer(u64 bytes, std::string_view label) = 0;
  // Offset and length are multiples of 4. Takes effect before anything that is run later.
  virtual void write(const Buffer& buffer, u64 offset, Bytes bytes) = 0;
  // Waits for all that was run before.
  Task<Status> read(const Buffer& buffer, u64 offset, MutableBytes out);
  // The same without waiting. With `first`, that program runs before it, in one submission.
  virtual Result<Download> start_read(BufferView from, const Program* first = nullptr) = 0;

  // The text is the key: the same text gives the same pipeline. Begins to compile and does not wait: all that
  // are asked for compile side by side. What is wrong with one comes out of make_program() with its label and
  // the compiler's message.
  virtual Result<u32> pipeline(std::string_view wgsl, std::string_view label) = 0;

  // Waits for its pipelines. A browser cannot: there, settle() does, and has to before the program runs.
  virtual Result<Program> make_program(std::span<const Dispatch> dispatches) = 0;
  // Dispatches run one after another, each seeing what those before it wrote. Does not wait.
  virtual Status run(const Program& program) = 0;
  // Runs it with a timestamp around each dispatch; nanoseconds, one for each. Needs info().timestamps.
  virtual Task<Result<std::vector<u64>>> profile(const Program& program) = 0;

  // Waits until the device has taken in everything written and made so far, and gives the first error since
  // the last time. Long uploads wait here now and then, so that what is on its way does not pile up.
  virtual Task<Status> settle() = 0;

  // Bytes of the buffers that exist now.
  virtual u64 allocated() const = 0;
  virtual DeviceCounts counts() const = 0;

  // Gives the GPU back at once: from here on everything fails with kDeviceLost, as it does after the system
  // took the GPU away. Buffers and programs can still be destroyed.
  virtual void lose() = 0;

 protected:
  friend class Buffer;
  friend class Program;
  friend class Download;
  virtual void destroy_buffer(u32 id) = 0;
  virtual void destroy_program(u32 id) = 0;
  virtual Task<Status> finish_read(u32 id, MutableBytes out) = 0;
  virtual void drop_read(u32 id) = 0;
};

inline Buffer::~Buffer() {
  if (device_ != nullptr) device_->destroy_buffer(id_);
}
inline Program::~Program() {
  if (device_ != nullptr) device_->destroy_program(id_);
}
inline Download::~Download() {
  if (device_ != nullptr) device_->drop_read(id_);
}

inline Task<Status> Download::finish(MutableBytes out) {
  CHECK(device_ != nullptr && out.size() == bytes_);
  return std::exchange(device_, nullptr)->finish_read(id_, out);
}

inline Task<Status> Device::read(const Buffer& buffer, u64 offset, MutableBytes out) {
  if (out.empty()) co_return co_await settle();
  Download download = CO_TRY(start_read(buffer.view(offset, out.size())));
  co_return co_await download.finish(out);
}

}  // namespace bezel
