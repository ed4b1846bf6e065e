// Bytes that the host reads: a URL, a Blob, a file of the browser's private file system.
#pragma once
#include <memory>
#include <string>

#include "io/source.h"

namespace bezel {

// `id` is the host's number for it. The host forgets it when the Source is destroyed.
std::unique_ptr<Source> host_source(u32 id, u64 size, std::string name);

}  // namespace bezel
