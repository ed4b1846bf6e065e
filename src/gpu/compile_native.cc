#include "gpu/compile_native.h"

namespace bezel {
namespace {

using Shared = std::shared_ptr<Compiled>;

// A callback's share.
void* share(const Shared& compiled) { return new Shared(compiled); }
Shared take(void* share) {
  const std::unique_ptr<Shared> owned(static_cast<Shared*>(share));
  return *owned;
}

}  // namespace

Shared compile(const Dawn& dawn, WGPUDevice device, std::string_view wgsl, std::string_view label) {
  const auto compiled = std::make_shared<Compiled>(dawn, label);
  WGPUShaderSourceWGSL source{};
  source.chain.sType = WGPUSType_ShaderSourceWGSL;
  source.code = view(wgsl);
  WGPUShaderModuleDescriptor module_descriptor{};
  module_descriptor.nextInChain = &source.chain;
  module_descriptor.label = view(label);
  dawn.DevicePushErrorScope(device, WGPUErrorFilter_Validation);
  WGPUShaderModule module = dawn.DeviceCreateShaderModule(device, &module_descriptor);
  WGPUPopErrorScopeCallbackInfo on_text{};
  on_text.mode = WGPUCallbackMode_AllowProcessEvents;
  on_text.userdata1 = share(compiled);
  on_text.callback = [](WGPUPopErrorScopeStatus, WGPUErrorType type, WGPUStringView message, void* user,
                        void*) {
    const Shared c = take(user);
    if (type != WGPUErrorType_NoError) c->problem = text(message);  // it explains the pipeline's
    c->answer();
  };
  dawn.DevicePopErrorScope(device, on_text);

  WGPUComputePipelineDescriptor descriptor{};
  descriptor.label = view(label);
  descriptor.compute.module = module;
  descriptor.compute.entryPoint = view("main");
  WGPUCreateComputePipelineAsyncCallbackInfo on_pipeline{};
  on_pipeline.mode = WGPUCallbackMode_AllowProcessEvents;
  on_pipeline.userdata1 = share(compiled);
  on_pipeline.callback = [](WGPUCreatePipelineAsyncStatus status, WGPUComputePipeline pipeline,
                            WGPUStringView message, void* user, void*) {
    const Shared c = take(user);
    c->handle = pipeline;
    if (status != WGPUCreatePipelineAsyncStatus_Success && c->problem.empty()) {
      c->problem = text(message);
      if (c->problem.empty()) c->problem = "The GPU gave no pipeline.";
    }
    c->answer();
  };
  dawn.DeviceCreateComputePipelineAsync(device, &descriptor, on_pipeline);
  dawn.ShaderModuleRelease(module);
  return compiled;
}

}  // namespace bezel
