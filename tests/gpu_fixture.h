// The GPU that tests share. A machine without one fails them: there is always a software adapter.
#pragma once
#include "gpu/device.h"
#include "support.h"

namespace bezel {

// $BEZEL_SMALL_GPU imitates the smallest adapter WebGPU allows: no extensions, little of everything.
inline DeviceOptions test_device_options() {
  if (std::getenv("BEZEL_SMALL_GPU") == nullptr) return {};
  return {.f16 = false,
          .subgroups = false,
          .timestamps = false,
          .max_binding = 128 << 20,
          .max_storage_bindings = 8,
          .max_invocations = 256};
}

inline Device* test_device() {
  static auto device = run_now(Device::open(test_device_options()));
  if (!device) {
    ADD_FAILURE() << device.error().message;
    std::abort();
  }
  return device->get();
}

}  // namespace bezel
