#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <unordered_map>

#include "base/check.h"
#include "gpu/compile_native.h"
#include "gpu/dawn_native.h"
#include "gpu/device.h"

namespace bezel {
namespace {

struct Launch {
  WGPUComputePipeline pipeline;
  WGPUBindGroup group;
  Grid grid;
};

struct ProgramData {
  std::vector<Launch> launches;
  u32 params = 0;  // the buffer of all uniforms
};

// What became of a mapping. Shared with its callback, which may come after nobody waits for it any more.
struct Mapped {
  bool done = false, good = false;
};

// Bytes that were copied, or are about to be, into a buffer that the CPU can read.
struct Reading {
  WGPUBuffer staging = nullptr;
  u32 own = 0;  // where the staging buffer serves this reading alone, its id; else it goes back to the others
  u64 skip = 0;    // bytes before those that were asked for: copies want multiples of four
  u64 mapped = 0;  // bytes
  std::shared_ptr<Mapped> state;
};

class DawnDevice final : public Device {
 public:
  DawnDevice(const Dawn& dawn, WGPUInstance instance) : dawn_(dawn), instance_(instance) {}
  ~DawnDevice() override {
    for (auto& [id, program] : programs_) release(program);
    compiled_.clear();
    for (auto& [id, reading] : readings_) {
      if (reading.own == 0) release(reading.staging);
    }
    for (WGPUBuffer staging : staging_) release(staging);
    for (auto& [id, buffer] : buffers_) release(buffer.handle);
    if (queue_ != nullptr) dawn_.QueueRelease(queue_);
    if (device_ != nullptr) {
      dawn_.DeviceDestroy(device_);
      dawn_.DeviceRelease(device_);
    }
    dawn_.InstanceProcessEvents(instance_);
    dawn_.InstanceRelease(instance_);
  }

  Status start(const DeviceOptions& options);

  const DeviceInfo& info() const override { return info_; }
  u64 allocated() const override { return allocated_; }
  DeviceCounts counts() const override {
    const auto good = std::ranges::count_if(compiled_, [](const auto& c) { return c->problem.empty(); });
    return {static_cast<u32>(buffers_.size()), static_cast<u32>(programs_.size()), static_cast<u32>(good),
            compiled_at_once_};
  }
  void lose() override {
    dawn_.DeviceDestroy(device_);
    wait(health_->lost);
  }

  Result<Buffer> make_buffer(u64 bytes, std::string_view label) override {
    if (bytes == 0 || bytes > info_.max_buffer) {
      return fail(ErrorKind::kMemory,
                  "A buffer of {} bytes for {} is not possible: the GPU's limit is {} bytes.", bytes, label,
                  info_.max_buffer);
    }
    const u32 id = TRY(create(bytes, label,
                              WGPUBufferUsage_Storage | WGPUBufferUsage_Uniform | WGPUBufferUsage_CopySrc |
                                  WGPUBufferUsage_CopyDst));
    return Buffer(*this, id, buffers_.at(id).bytes);
  }

  void write(const Buffer& buffer, u64 offset, Bytes bytes) override {
    CHECK(offset % 4 == 0 && bytes.size() % 4 == 0 && offset + bytes.size() <= buffer.bytes());
    dawn_.QueueWriteBuffer(queue_, handle(buffer.id()), offset, bytes.data(), bytes.size());
  }

  Result<Download> start_read(BufferView from, const Program* first) override;

  Task<Status> settle() override {
    bool done = false;
    WGPUQueueWorkDoneCallbackInfo callback{};
    callback.mode = WGPUCallbackMode_AllowProcessEvents;
    callback.userdata1 = &done;
    callback.callback = [](WGPUQueueWorkDoneStatus, WGPUStringView, void* user, void*) {
      *static_cast<bool*>(user) = true;
    };
    dawn_.QueueOnSubmittedWorkDone(queue_, callback);
    wait(done);
    co_return health_->take();
  }

  Result<u32> pipeline(std::string_view wgsl, std::string_view label) override;
  Result<Program> make_program(std::span<const Dispatch> dispatches) override;
  Status run(const Program& program) override;
  Task<Result<std::vector<u64>>> profile(const Program& program) override;

 private:
  struct Held {
    WGPUBuffer handle;
    u64 bytes;
  };

  WGPUBuffer handle(u32 id) const { return buffers_.at(id).handle; }

  void release(WGPUBuffer buffer) const {
    dawn_.BufferDestroy(buffer);
    dawn_.BufferRelease(buffer);
  }
  void release(const ProgramData& program) const {
    for (const Launch& launch : program.launches) dawn_.BindGroupRelease(launch.group);
  }

  void destroy_buffer(u32 id) override {
    const auto found = buffers_.find(id);
    release(found->second.handle);
    allocated_ -= found->second.bytes;
    buffers_.erase(found);
  }
  void destroy_program(u32 id) override {
    const auto found = programs_.find(id);
    release(found->second);
    destroy_buffer(found->second.params);
    programs_.erase(found);
  }
  Task<Status> finish_read(u32 id, MutableBytes out) override;
  void drop_read(u32 id) override { end(readings_.extract(id).mapped(), false); }

  // Runs `body` and gives the error of the kinds asked for that it caused, if any.
  template <class Body>
  Status guarded(Body body) {
    if (health_->lost) return health_->take();
    dawn_.DevicePushErrorScope(device_, WGPUErrorFilter_OutOfMemory);
    dawn_.DevicePushErrorScope(device_, WGPUErrorFilter_Validation);
    body();
    Health found;
    for (int scope = 0; scope < 2; ++scope) {
      struct Popped {
        Health* found;
        bool done = false;
      } popped{&found};
      WGPUPopErrorScopeCallbackInfo callback{};
      callback.mode = WGPUCallbackMode_AllowProcessEvents;
      callback.userdata1 = &popped;
      callback.callback = [](WGPUPopErrorScopeStatus, WGPUErrorType type, WGPUStringView message, void* user,
                             void*) {
        auto& p = *static_cast<Popped*>(user);
        if (type != WGPUErrorType_NoError) p.found->note(kind_of(type), text(message));
        p.done = true;
      };
      dawn_.DevicePopErrorScope(device_, callback);
      wait(popped.done);
    }
    if (health_->lost) return health_->take();
    return found.take();
  }

  // Answers usually come within tens of microseconds; after that, the core is worth more to others, such as
  // the threads of a software adapter.
  void wait(const bool& done) const {
    using Clock = std::chrono::steady_clock;
    const auto patience = Clock::now() + std::chrono::microseconds(200);
    while (true) {
      dawn_.InstanceProcessEvents(instance_);
      if (done) return;
      if (Clock::now() > patience) std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }

  Result<u32> create(u64 bytes, std::string_view label, WGPUBufferUsage usage) {
    if (max_memory_ > 0 && bytes > max_memory_ - std::min(allocated_, max_memory_)) {
      return fail(ErrorKind::kMemory, "There is no room for {} bytes for {}: {} of {} bytes are taken.",
                  bytes, label, allocated_, max_memory_);
    }
    const u64 size = (bytes + 3) / 4 * 4;
    WGPUBuffer buffer = TRY(create_uncounted(size, label, usage));
    const u32 id = ++next_id_;
    buffers_[id] = {buffer, size};
    allocated_ += size;
    return id;
  }

  Result<WGPUBuffer> create_uncounted(u64 bytes, std::string_view label, WGPUBufferUsage usage) {
    WGPUBufferDescriptor descriptor{};
    descriptor.label = view(label);
    descriptor.usage = usage;
    descriptor.size = bytes;
    WGPUBuffer buffer = nullptr;
    const Status status = guarded([&] { buffer = dawn_.DeviceCreateBuffer(device_, &descriptor); });
    if (!status) {
      if (buffer != nullptr) dawn_.BufferRelease(buffer);
      if (health_->lost) return std::unexpected(status.error());
      return fail(status.error().kind, "A buffer of {} bytes for {}: {}", bytes, label,
                  status.error().message);
    }
    return buffer;
  }

  // Waits until the pipelines of these dispatches are compiled.
  Status finish(std::span<const Dispatch> dispatches);
  // A buffer to read `bytes` through.
  Result<Reading> make_reading(u64 bytes);
  // Gives the buffer back, or away if it may not be used again.
  void end(const Reading& reading, bool good);
  void submit(WGPUCommandEncoder encoder) {
    WGPUCommandBuffer commands = dawn_.CommandEncoderFinish(encoder, nullptr);
    dawn_.QueueSubmit(queue_, 1, &commands);
    dawn_.CommandBufferRelease(commands);
    dawn_.CommandEncoderRelease(encoder);
  }
  static constexpr u64 kSmallRead = 64 << 10;  // reads up to this size share a few staging buffers

  void encode(WGPUComputePassEncoder pass, std::span<const Launch> launches) const {
    WGPUComputePipeline last = nullptr;
    for (const Launch& launch : launches) {
      if (launch.pipeline != last) dawn_.ComputePassEncoderSetPipeline(pass, launch.pipeline);
      last = launch.pipeline;
      dawn_.ComputePassEncoderSetBindGroup(pass, 0, launch.group, 0, nullptr);
      dawn_.ComputePassEncoderDispatchWorkgroups(pass, launch.grid.x, launch.grid.y, launch.grid.z);
    }
  }
  void encode(WGPUCommandEncoder encoder, const Program& program) const {
    WGPUComputePassEncoder pass = dawn_.CommandEncoderBeginComputePass(encoder, nullptr);
    encode(pass, programs_.at(program.id()).launches);
    dawn_.ComputePassEncoderEnd(pass);
    dawn_.ComputePassEncoderRelease(pass);
  }

  const Dawn& dawn_;
  WGPUInstance instance_;
  WGPUDevice device_ = nullptr;
  WGPUQueue queue_ = nullptr;
  std::shared_ptr<Health> health_ = std::make_shared<Health>();
  DeviceInfo info_;
  u32 next_id_ = 0;
  u64 allocated_ = 0, max_memory_ = 0;
  std::unordered_map<u32, Held> buffers_;
  std::unordered_map<u32, ProgramData> programs_;
  std::unordered_map<u32, Reading> readings_;
  std::vector<WGPUBuffer> staging_;                 // of kSmallRead bytes, for the next readings
  std::unordered_map<std::string, u32> pipelines_;  // by text
  std::vector<std::shared_ptr<Compiled>> compiled_;
  u32 asked_ = 0, compiled_at_once_ = 0;  // pipelines since the last wait for some, and the most of them
};

Status DawnDevice::start(const DeviceOptions& options) {
  struct Found {
    WGPUAdapter adapter = nullptr;
    WGPUDevice device = nullptr;
    std::string message;
    bool done = false;
  } found;
  WGPURequestAdapterOptions wanted{};
  wanted.featureLevel = WGPUFeatureLevel_Core;
  wanted.powerPreference = WGPUPowerPreference_HighPerformance;
  WGPURequestAdapterCallbackInfo on_adapter{};
  on_adapter.mode = WGPUCallbackMode_AllowProcessEvents;
  on_adapter.userdata1 = &found;
  on_adapter.callback = [](WGPURequestAdapterStatus, WGPUAdapter adapter, WGPUStringView message, void* user,
                           void*) {
    auto& f = *static_cast<Found*>(user);
    f.adapter = adapter;
    f.message = text(message);
    f.done = true;
  };
  dawn_.InstanceRequestAdapter(instance_, &wanted, on_adapter);
  wait(found.done);
  if (found.adapter == nullptr) {
    return fail(ErrorKind::kNotFound, "No GPU that speaks WebGPU was found. {}", found.message);
  }

  WGPUAdapterInfo about{};
  dawn_.AdapterGetInfo(found.adapter, &about);
  // Where no driver works, Dawn offers a backend that does nothing and reports success.
  const bool null_backend = about.backendType == WGPUBackendType_Null;
  info_.name = text(about.device);
  info_.vendor = text(about.vendor);
  info_.driver = text(about.description);
  info_.software = about.adapterType == WGPUAdapterType_CPU;
  info_.backend = about.backendType == WGPUBackendType_Vulkan  ? "Vulkan"
                  : about.backendType == WGPUBackendType_Metal ? "Metal"
                  : about.backendType == WGPUBackendType_D3D12 ? "D3D12"
                                                               : "other";
  dawn_.AdapterInfoFreeMembers(about);
  if (null_backend) {
    dawn_.AdapterRelease(found.adapter);
    return fail(ErrorKind::kNotFound,
                "No GPU driver works here: install one for Vulkan, or name one in VK_ICD_FILENAMES.");
  }

  WGPULimits limits{};
  dawn_.AdapterGetLimits(found.adapter, &limits);
  const auto lower = [](auto& limit, auto wanted_limit) {
    if (wanted_limit > 0) limit = std::min<std::remove_reference_t<decltype(limit)>>(limit, wanted_limit);
  };
  lower(limits.maxStorageBufferBindingSize, options.max_binding);
  lower(limits.maxStorageBuffersPerShaderStage, options.max_storage_bindings);
  lower(limits.maxComputeInvocationsPerWorkgroup, options.max_invocations);
  lower(limits.maxComputeWorkgroupSizeX, options.max_invocations);
  std::vector<WGPUFeatureName> features;
  const auto want = [&](WGPUFeatureName name, bool allowed) {
    if (!allowed || dawn_.AdapterHasFeature(found.adapter, dawn_.feature(name)) == 0) return false;
    features.push_back(dawn_.feature(name));
    return true;
  };
  max_memory_ = options.max_memory;
  info_.f16 = want(WGPUFeatureName_ShaderF16, options.f16);
  info_.subgroups = want(WGPUFeatureName_Subgroups, options.subgroups);
  info_.timestamps = want(WGPUFeatureName_TimestampQuery, options.timestamps);
  info_.subgroup_matrix = info_.f16 && info_.subgroups &&
                          want(WGPUFeatureName_ChromiumExperimentalSubgroupMatrix, options.subgroup_matrix);
  info_.integer_dots =
      options.integer_dots && dawn_.InstanceHasWGSLLanguageFeature(
                                  instance_, WGPUWGSLLanguageFeatureName_Packed4x8IntegerDotProduct) != 0;
  info_.max_buffer = limits.maxBufferSize;
  info_.max_binding = limits.maxStorageBufferBindingSize;
  info_.max_storage_bindings = limits.maxStorageBuffersPerShaderStage;
  info_.max_invocations = limits.maxComputeInvocationsPerWorkgroup;
  info_.max_workgroup_memory = limits.maxComputeWorkgroupStorageSize;
  info_.max_groups = limits.maxComputeWorkgroupsPerDimension;
  info_.storage_alignment = limits.minStorageBufferOffsetAlignment;
  info_.uniform_alignment = limits.minUniformBufferOffsetAlignment;

  // Timestamps are coarse by default, lest a web page learn too much; kernels take less than such a step.
  const char* const coarse = "timestamp_quantization";
  WGPUDawnTogglesDescriptor toggles{};
  toggles.chain.sType = WGPUSType_DawnTogglesDescriptor;
  toggles.disabledToggleCount = 1;
  toggles.disabledToggles = &coarse;
  WGPUDeviceDescriptor descriptor{};
  descriptor.nextInChain = &toggles.chain;
  descriptor.requiredLimits = &limits;
  descriptor.requiredFeatureCount = features.size();
  descriptor.requiredFeatures = features.data();
  descriptor.deviceLostCallbackInfo.mode = WGPUCallbackMode_AllowProcessEvents;
  descriptor.deviceLostCallbackInfo.userdata1 = health_.get();
  descriptor.deviceLostCallbackInfo.callback = [](const WGPUDevice*, WGPUDeviceLostReason,
                                                  WGPUStringView message, void* user, void*) {
    auto& health = *static_cast<Health*>(user);
    health.lost = true;
    health.message = text(message);
  };
  descriptor.uncapturedErrorCallbackInfo.userdata1 = health_.get();
  descriptor.uncapturedErrorCallbackInfo.callback = [](const WGPUDevice*, WGPUErrorType type,
                                                       WGPUStringView message, void* user, void*) {
    static_cast<Health*>(user)->note(kind_of(type), text(message));
  };
  WGPURequestDeviceCallbackInfo on_device{};
  on_device.mode = WGPUCallbackMode_AllowProcessEvents;
  on_device.userdata1 = &found;
  on_device.callback = [](WGPURequestDeviceStatus, WGPUDevice device, WGPUStringView message, void* user,
                          void*) {
    auto& f = *static_cast<Found*>(user);
    f.device = device;
    f.message = text(message);
    f.done = true;
  };
  found.done = false;
  dawn_.AdapterRequestDevice(found.adapter, &descriptor, on_device);
  wait(found.done);
  dawn_.AdapterRelease(found.adapter);
  if (found.device == nullptr)
    return fail(ErrorKind::kUnsupported, "The GPU {} cannot be used: {}", info_.name, found.message);
  device_ = found.device;
  queue_ = dawn_.DeviceGetQueue(device_);
  return {};
}

Result<Reading> DawnDevice::make_reading(u64 bytes) {
  Reading reading;
  reading.mapped = bytes;
  reading.state = std::make_shared<Mapped>();
  constexpr WGPUBufferUsage kUsage = WGPUBufferUsage_MapRead | WGPUBufferUsage_CopyDst;
  if (bytes > kSmallRead) {
    reading.own = TRY(create(bytes, "read back", kUsage));
    reading.staging = handle(reading.own);
  } else if (staging_.empty()) {
    reading.staging = TRY(create_uncounted(kSmallRead, "read back", kUsage));
  } else {
    reading.staging = staging_.back();
    staging_.pop_back();
  }
  return reading;
}

void DawnDevice::end(const Reading& reading, bool good) {
  if (reading.own != 0) {
    destroy_buffer(reading.own);
  } else if (good) {
    staging_.push_back(reading.staging);
  } else {
    release(reading.staging);
  }
}

Result<Download> DawnDevice::start_read(BufferView from, const Program* first) {
  if (health_->lost) return std::unexpected(health_->take().error());
  const u64 begin = from.offset / 4 * 4;
  Reading reading = TRY(make_reading((from.offset + from.bytes + 3) / 4 * 4 - begin));
  reading.skip = from.offset - begin;
  WGPUCommandEncoder encoder = dawn_.DeviceCreateCommandEncoder(device_, nullptr);
  if (first != nullptr) encode(encoder, *first);
  dawn_.CommandEncoderCopyBufferToBuffer(encoder, handle(from.buffer), begin, reading.staging, 0,
                                         reading.mapped);
  submit(encoder);
  WGPUBufferMapCallbackInfo callback{};
  callback.mode = WGPUCallbackMode_AllowProcessEvents;
  callback.userdata1 = new std::shared_ptr<Mapped>(reading.state);
  callback.callback = [](WGPUMapAsyncStatus status, WGPUStringView, void* user, void*) {
    const std::unique_ptr<std::shared_ptr<Mapped>> state(static_cast<std::shared_ptr<Mapped>*>(user));
    **state = {true, status == WGPUMapAsyncStatus_Success};
  };
  dawn_.BufferMapAsync(reading.staging, WGPUMapMode_Read, 0, reading.mapped, callback);
  const u32 id = ++next_id_;
  readings_[id] = std::move(reading);
  Download download(*this, id, from.bytes);
  TRY(health_->take());
  return download;
}

Task<Status> DawnDevice::finish_read(u32 id, MutableBytes out) {
  const Reading reading = readings_.extract(id).mapped();
  wait(reading.state->done);
  const bool good = reading.state->good;
  if (good) {
    const auto* data =
        static_cast<const std::byte*>(dawn_.BufferGetConstMappedRange(reading.staging, 0, reading.mapped));
    std::memcpy(out.data(), data + reading.skip, out.size());
    dawn_.BufferUnmap(reading.staging);
  }
  end(reading, good);
  CO_TRY(health_->take());
  if (!good) co_return fail(ErrorKind::kIo, "Reading {} bytes back from the GPU failed.", out.size());
  co_return Status{};
}

Result<u32> DawnDevice::pipeline(std::string_view wgsl, std::string_view label) {
  if (health_->lost) return std::unexpected(health_->take().error());
  if (const auto known = pipelines_.find(std::string(wgsl)); known != pipelines_.end()) return known->second;
  compiled_.push_back(compile(dawn_, device_, wgsl, label));
  compiled_at_once_ = std::max(compiled_at_once_, ++asked_);
  const u32 id = static_cast<u32>(compiled_.size() - 1);
  pipelines_.emplace(wgsl, id);
  return id;
}

Status DawnDevice::finish(std::span<const Dispatch> dispatches) {
  asked_ = 0;
  for (const Dispatch& dispatch : dispatches) {
    const Compiled& compiled = *compiled_[dispatch.pipeline];
    wait(compiled.done);
    if (health_->lost) return health_->take();
    if (!compiled.problem.empty()) return invalid("Kernel {}: {}", compiled.label, compiled.problem);
  }
  return {};
}

Result<Program> DawnDevice::make_program(std::span<const Dispatch> dispatches) {
  TRY(finish(dispatches));
  u64 slot = info_.uniform_alignment;  // room for the largest
  for (const Dispatch& d : dispatches) slot = std::max<u64>(slot, d.params.size());
  slot = (slot + info_.uniform_alignment - 1) / info_.uniform_alignment * info_.uniform_alignment;
  ProgramData data;
  data.params = TRY(create(std::max<u64>(1, dispatches.size()) * slot, "params",
                           WGPUBufferUsage_Uniform | WGPUBufferUsage_CopyDst));
  std::vector<std::byte> params(dispatches.size() * slot);
  for (std::size_t i = 0; i < dispatches.size(); ++i) {
    std::ranges::copy(dispatches[i].params, params.begin() + static_cast<std::ptrdiff_t>(i * slot));
  }
  if (!params.empty()) dawn_.QueueWriteBuffer(queue_, handle(data.params), 0, params.data(), params.size());
  const Status status = guarded([&] {
    for (std::size_t i = 0; i < dispatches.size(); ++i) {
      const Dispatch& dispatch = dispatches[i];
      const Compiled& compiled = *compiled_[dispatch.pipeline];
      std::vector<WGPUBindGroupEntry> entries(dispatch.bindings.size() + 1);
      entries[0].buffer = handle(data.params);
      entries[0].offset = i * slot;
      entries[0].size = dispatch.params.size();
      for (u32 b = 0; b < dispatch.bindings.size(); ++b) {
        const BufferView& bound = dispatch.bindings[b];
        entries[b + 1].binding = b + 1;
        entries[b + 1].buffer = handle(bound.buffer);
        entries[b + 1].offset = bound.offset;
        entries[b + 1].size = bound.bytes;
      }
      WGPUBindGroupLayout layout = dawn_.ComputePipelineGetBindGroupLayout(compiled.handle, 0);
      WGPUBindGroupDescriptor descriptor{};
      descriptor.label = view(compiled.label);  // errors name it
      descriptor.layout = layout;
      descriptor.entryCount = entries.size();
      descriptor.entries = entries.data();
      data.launches.push_back(
          {compiled.handle, dawn_.DeviceCreateBindGroup(device_, &descriptor), dispatch.grid});
      dawn_.BindGroupLayoutRelease(layout);
    }
  });
  const u32 id = ++next_id_;
  programs_[id] = std::move(data);
  Program program(*this, id);
  TRY(status);
  return program;
}

Status DawnDevice::run(const Program& program) {
  WGPUCommandEncoder encoder = dawn_.DeviceCreateCommandEncoder(device_, nullptr);
  encode(encoder, program);
  submit(encoder);
  return health_->take();
}

Task<Result<std::vector<u64>>> DawnDevice::profile(const Program& program) {
  if (!info_.timestamps) co_return fail(ErrorKind::kUnsupported, "The GPU {} has no timestamps.", info_.name);
  const ProgramData& data = programs_.at(program.id());
  std::vector<u64> times;
  constexpr u32 kAtOnce = 2048;  // WebGPU's limit on queries is 4096
  for (std::size_t first = 0; first < data.launches.size(); first += kAtOnce) {
    const u32 count = static_cast<u32>(std::min<std::size_t>(kAtOnce, data.launches.size() - first));
    const u64 bytes = u64{16} * count;
    const u32 resolved_id =
        CO_TRY(create(bytes, "timestamps", WGPUBufferUsage_QueryResolve | WGPUBufferUsage_CopySrc));
    const Buffer resolved(*this, resolved_id, bytes);
    WGPUQuerySetDescriptor descriptor{};
    descriptor.type = WGPUQueryType_Timestamp;
    descriptor.count = 2 * count;
    WGPUQuerySet queries = dawn_.DeviceCreateQuerySet(device_, &descriptor);
    WGPUCommandEncoder encoder = dawn_.DeviceCreateCommandEncoder(device_, nullptr);
    for (u32 i = 0; i < count; ++i) {
      WGPUPassTimestampWrites writes{};
      writes.querySet = queries;
      writes.beginningOfPassWriteIndex = 2 * i;
      writes.endOfPassWriteIndex = 2 * i + 1;
      WGPUComputePassDescriptor pass_descriptor{};
      pass_descriptor.timestampWrites = &writes;
      WGPUComputePassEncoder pass = dawn_.CommandEncoderBeginComputePass(encoder, &pass_descriptor);
      encode(pass, std::span(data.launches).subspan(first + i, 1));
      dawn_.ComputePassEncoderEnd(pass);
      dawn_.ComputePassEncoderRelease(pass);
    }
    dawn_.CommandEncoderResolveQuerySet(encoder, queries, 0, 2 * count, handle(resolved.id()), 0);
    submit(encoder);
    std::vector<u64> stamps(2 * count);
    const Status status = co_await read(resolved, 0, std::as_writable_bytes(std::span(stamps)));
    dawn_.QuerySetDestroy(queries);
    dawn_.QuerySetRelease(queries);
    CO_TRY(status);
    for (u32 i = 0; i < count; ++i)
      times.push_back(stamps[2 * i + 1] - std::min(stamps[2 * i], stamps[2 * i + 1]));
  }
  co_return times;
}

}  // namespace

Task<Result<std::unique_ptr<Device>>> Device::open(DeviceOptions options) {
  const Dawn* dawn = CO_TRY(Dawn::load());
  WGPUInstance instance = dawn->create_instance();
  if (instance == nullptr)
    co_return fail(ErrorKind::kUnsupported, "The WebGPU library could not be started.");
  auto device = std::make_unique<DawnDevice>(*dawn, instance);
  CO_TRY(device->start(options));
  co_return device;
}

}  // namespace bezel
