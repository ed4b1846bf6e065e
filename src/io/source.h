// Where bytes come from: a file, memory, later a URL or a browser's file. Nothing above this folder knows
// which.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/task.h"
#include "base/types.h"

namespace bezel {

class Source {
 public:
  virtual ~Source() = default;
  virtual u64 size() const = 0;
  // How messages call it: a path, a URL, "memory".
  virtual const std::string& name() const = 0;
  // Fills all of `out` from `offset` or fails; a range past the end is an error that names both.
  virtual Task<Status> read(u64 offset, MutableBytes out) = 0;
};

// The error every Source gives for a range outside of it.
std::unexpected<Error> past_the_end(const Source& source, u64 offset, u64 length);

// Positioned reads on an open file; the file may be larger than memory.
Result<std::unique_ptr<Source>> open_file(const std::string& path);

// Owns the bytes.
std::unique_ptr<Source> memory_source(std::vector<std::byte> bytes, std::string name = "memory");

// Many small reads as few large ones: ranges that lie within `max_gap` bytes of each other are fetched
// together, up to `max_read` bytes a time. The order of `ranges` does not matter; they may overlap.
struct ReadRange {
  u64 offset = 0;
  MutableBytes out;
};
Task<Status> read_ranges(Source& source, std::span<const ReadRange> ranges, u64 max_gap = 64 << 10,
                         u64 max_read = 8 << 20);

}  // namespace bezel
