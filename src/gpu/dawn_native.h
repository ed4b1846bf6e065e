// Dawn's functions, found at run time: the library comes from npm, $WEBGPU_LIB names another.
#pragma once
#include <webgpu/webgpu.h>

#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace bezel {

// Every wgpu* function that is used, under its name without the prefix.
// clang-format off
#define BEZEL_DAWN_FUNCTIONS(F) \
  F(InstanceProcessEvents) F(InstanceRequestAdapter) F(InstanceRelease) F(AdapterGetInfo) \
  F(AdapterInfoFreeMembers) F(AdapterGetLimits) F(AdapterHasFeature) F(AdapterRequestDevice) \
  F(AdapterRelease) F(DeviceCreateBuffer) F(DeviceCreateShaderModule) F(DeviceCreateComputePipelineAsync) \
  F(DeviceCreateBindGroup) F(DeviceCreateCommandEncoder) F(DeviceCreateQuerySet) F(DeviceGetQueue) \
  F(DevicePushErrorScope) F(DevicePopErrorScope) F(DeviceRelease) F(DeviceDestroy) F(BufferDestroy) \
  F(BufferRelease) F(BufferMapAsync) F(BufferGetConstMappedRange) F(BufferUnmap) F(ShaderModuleRelease) \
  F(ComputePipelineGetBindGroupLayout) F(ComputePipelineRelease) F(BindGroupLayoutRelease) \
  F(BindGroupRelease) F(CommandEncoderBeginComputePass) F(CommandEncoderCopyBufferToBuffer) \
  F(CommandEncoderResolveQuerySet) F(CommandEncoderFinish) F(CommandEncoderRelease) \
  F(CommandBufferRelease) F(ComputePassEncoderSetPipeline) F(ComputePassEncoderSetBindGroup) \
  F(ComputePassEncoderDispatchWorkgroups) F(ComputePassEncoderEnd) F(ComputePassEncoderRelease) \
  F(QueueWriteBuffer) F(QueueSubmit) F(QueueOnSubmittedWorkDone) F(QueueRelease) F(QuerySetDestroy) \
  F(QuerySetRelease)
// clang-format on

struct Dawn {
#define F(name) decltype(&wgpu##name) name = nullptr;
  BEZEL_DAWN_FUNCTIONS(F)
#undef F

  // Loads the library once; later calls give the same table or the same error.
  static Result<const Dawn*> load();
  WGPUInstance create_instance() const;
  // Builds of Dawn before mid 2025 number some features differently from this header.
  WGPUFeatureName feature(WGPUFeatureName name) const;

 private:
  Status find();
  void* create_ = nullptr;  // wgpuCreateInstance: its argument changed
  bool old_ = false;
};

inline std::string_view text(WGPUStringView s) {
  if (s.data == nullptr) return {};
  return s.length == WGPU_STRLEN ? std::string_view(s.data) : std::string_view(s.data, s.length);
}
inline WGPUStringView view(std::string_view s) { return {s.data(), s.size()}; }

// What callbacks found out about the device. It outlives the device, because the last callback comes while
// that dies.
struct Health {
  bool lost = false;
  std::string message;  // the first error since it was last asked for
  ErrorKind kind = ErrorKind::kInvalid;

  void note(ErrorKind what, std::string_view text) {
    if (!message.empty()) return;
    message = text;
    kind = what;
  }
  Status take() {
    if (lost)
      return fail(ErrorKind::kDeviceLost, "The GPU was lost ({}). Open it again and reload the model.",
                  message);
    if (message.empty()) return {};
    return fail(kind, "The GPU refused: {}", std::exchange(message, {}));
  }
};

inline ErrorKind kind_of(WGPUErrorType type) {
  return type == WGPUErrorType_OutOfMemory ? ErrorKind::kMemory : ErrorKind::kInvalid;
}

}  // namespace bezel
