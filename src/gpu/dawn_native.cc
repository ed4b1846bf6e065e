#include "gpu/dawn_native.h"

#include <dlfcn.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace bezel {
namespace {

// Beside the program, in a checkout's node_modules, or wherever the system looks.
std::vector<std::string> candidates() {
  if (const char* named = std::getenv("WEBGPU_LIB"); named != nullptr && *named != '\0') return {named};
  std::vector<std::string> paths;
  Dl_info self{};
  if (dladdr(reinterpret_cast<void*>(&candidates), &self) != 0 && self.dli_fname != nullptr) {
    std::string folder = self.dli_fname;
    folder.resize(folder.find_last_of('/') + 1);
    paths.push_back(folder + "libwebgpu_wrapper.so");
  }
  paths.emplace_back(BEZEL_DAWN);
  paths.emplace_back("libwebgpu_dawn.so");
  return paths;
}

}  // namespace

Status Dawn::find() {
  void* library = nullptr;
  std::string problems;
  for (const std::string& path : candidates()) {
    library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) break;
    if (const char* why = dlerror()) problems += std::string(problems.empty() ? "" : "; ") + why;
  }
  if (library == nullptr) {
    return fail(ErrorKind::kNotFound, "No WebGPU library was found (set WEBGPU_LIB to one): {}.", problems);
  }
  const char* missing = nullptr;
#define F(name)                                                          \
  name = reinterpret_cast<decltype(name)>(dlsym(library, "wgpu" #name)); \
  if (name == nullptr) missing = "wgpu" #name;
  BEZEL_DAWN_FUNCTIONS(F)
#undef F
  create_ = dlsym(library, "wgpuCreateInstance");
  if (create_ == nullptr) missing = "wgpuCreateInstance";
  if (missing != nullptr)
    return fail(ErrorKind::kUnsupported, "The WebGPU library has no function {}.", missing);
  old_ = dlsym(library, "wgpuGetInstanceFeatures") == nullptr;
  return {};
}

Result<const Dawn*> Dawn::load() {
  static Dawn dawn;
  static const Status found = dawn.find();
  if (!found) return std::unexpected(found.error());
  return &dawn;
}

WGPUInstance Dawn::create_instance() const {
  if (!old_) return reinterpret_cast<decltype(&wgpuCreateInstance)>(create_)(nullptr);
  // The older descriptor: a chain and the capabilities of timed waits, which are not used.
  struct {
    void* next = nullptr;
    void* capabilities_next = nullptr;
    WGPUBool timed_wait = 0;
    std::size_t timed_wait_count = 0;
  } descriptor;
  return reinterpret_cast<WGPUInstance (*)(const void*)>(create_)(&descriptor);
}

WGPUFeatureName Dawn::feature(WGPUFeatureName name) const {
  if (!old_) return name;
  switch (name) {
    case WGPUFeatureName_TimestampQuery:
      return static_cast<WGPUFeatureName>(3);
    case WGPUFeatureName_ShaderF16:
      return static_cast<WGPUFeatureName>(10);
    case WGPUFeatureName_Subgroups:
      return static_cast<WGPUFeatureName>(17);
    default:
      return static_cast<WGPUFeatureName>(0x7FFFFFFF);
  }
}

}  // namespace bezel
