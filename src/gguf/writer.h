// Writes GGUF v3: metadata and tensor table first, then tensor data in the order of declaration, streamed.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "gguf/dtype.h"
#include "gguf/gguf.h"

namespace bezel {

// Collects metadata and tensor declarations; header() is then everything up to the tensor data. Setting a key
// again replaces its value. general.alignment, where it is not 32, comes before the first tensor.
class GgufWriter {
 public:
  void set_uint(std::string_view key, u32 value);
  void set_u64(std::string_view key, u64 value);
  void set_int(std::string_view key, i32 value);
  void set_float(std::string_view key, f32 value);
  void set_bool(std::string_view key, bool value);
  void set_string(std::string_view key, std::string_view value);
  void set_uints(std::string_view key, std::span<const u32> values);
  void set_ints(std::string_view key, std::span<const i32> values);
  void set_floats(std::string_view key, std::span<const f32> values);
  void set_bools(std::string_view key, const std::vector<bool>& values);
  void set_strings(std::string_view key, std::span<const std::string> values);
  void set_value(std::string_view key, const Value& value);  // copies any value from another file

  // `ne` as in TensorInfo, 1 to 4 dimensions.
  void add_tensor(std::string_view name, DType type, std::span<const u64> ne);

  struct Placed {
    std::string name;
    DType type;
    std::vector<u64> ne;
    u64 offset;  // from the start of the data section
    u64 bytes;
  };
  const std::vector<Placed>& tensors() const { return tensors_; }

  // Magic through padding. The data section follows: each tensor at its offset, zero padding between.
  std::vector<std::byte> header() const;
  u64 data_bytes() const { return data_bytes_; }  // with the padding after the last tensor

 private:
  struct Entry {
    std::string key;
    std::vector<std::byte> value;  // the type and what follows it, as stored
  };
  void set(std::string_view key, std::vector<std::byte> value);
  u64 align(u64 offset) const { return (offset + alignment_ - 1) / alignment_ * alignment_; }

  std::vector<Entry> entries_;
  std::vector<Placed> tensors_;
  u64 alignment_ = 32;
  u64 data_bytes_ = 0;
};

// Header, then every tensor's bytes in declaration order. An error when a tensor has not the size declared.
Status write_gguf(const std::string& path, const GgufWriter& writer, std::span<const Bytes> tensor_data);

}  // namespace bezel
