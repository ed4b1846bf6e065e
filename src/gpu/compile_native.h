// Kernels compiled by Dawn, on threads of its own.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "base/types.h"
#include "gpu/dawn_native.h"

namespace bezel {

// A pipeline, perhaps still being compiled. Shared with Dawn's callbacks, which may come after nobody waits
// for them any more.
struct Compiled {
  Compiled(const Dawn& functions, std::string_view name) : dawn(functions), label(name) {}
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;
  ~Compiled() {
    if (handle != nullptr) dawn.ComputePipelineRelease(handle);
  }
  void answer() { done = --answers == 0; }

  const Dawn& dawn;
  std::string label;
  WGPUComputePipeline handle = nullptr;
  std::string problem;  // what the compiler says, if it is not content
  u32 answers = 2;      // still to come: about the text, and about the pipeline
  bool done = false;
};

// Begins, and does not wait: events of the instance bring the answers.
std::shared_ptr<Compiled> compile(const Dawn& dawn, WGPUDevice device, std::string_view wgsl,
                                  std::string_view label);

}  // namespace bezel
