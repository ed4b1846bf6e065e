// GGUF: header -> metadata and tensor table. Tensor data is never read here.
#pragma once
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/quote.h"
#include "base/result.h"
#include "base/task.h"
#include "base/types.h"
#include "gguf/dtype.h"
#include "io/source.h"

namespace bezel {

enum class ValueType : u32 {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64
};

// Bytes of one scalar; 0 for strings and arrays.
u32 value_size(ValueType type);

// A view of one metadata value inside the header's bytes, validated when the header was parsed. Any integer
// type reads as any other where the number fits: files disagree about widths.
class Value {
 public:
  Value(ValueType type, Bytes raw);  // a scalar or a string
  static Value array(ValueType element, u64 count, Bytes raw);

  ValueType type() const { return type_; }
  bool is_array() const { return type_ == ValueType::kArray; }
  ValueType element_type() const { return element_; }
  u64 count() const { return count_; }  // elements of an array
  Bytes raw() const { return raw_; }    // one scalar, a string without its length, or the elements as stored

  // Scalars; nullopt when the value is of another kind or out of range.
  std::optional<i64> as_int() const;
  std::optional<u64> as_uint() const;
  std::optional<f64> as_float() const;  // integers too
  std::optional<bool> as_bool() const;
  std::optional<std::string_view> as_string() const;

  // Arrays; nullopt when it is not an array of that kind.
  std::optional<std::vector<i64>> as_ints() const;  // bools count as 0 and 1
  std::optional<std::vector<f64>> as_floats() const;
  std::optional<std::vector<std::string_view>> as_strings() const;

 private:
  Value() = default;
  ValueType type_ = ValueType::kU8;
  ValueType element_ = ValueType::kU8;
  u64 count_ = 0;
  Bytes raw_;
};

struct KeyValue {
  std::string_view key;
  Value value;
};

// ne[0] is contiguous. Unused dimensions are 1.
struct TensorInfo {
  std::string_view name;
  DType type = DType::kF32;
  u32 dims = 1;
  std::array<u64, 4> ne{1, 1, 1, 1};
  u32 part = 0;    // which file of a split model
  u64 offset = 0;  // from the start of that file
  u64 bytes = 0;

  u64 elements() const { return ne[0] * ne[1] * ne[2] * ne[3]; }
  u64 rows() const { return ne[1] * ne[2] * ne[3]; }
  u64 row_bytes() const { return bytes / rows(); }
};

// One parsed file. All views point into `bytes`, which moves with it.
struct GgufHeader {
  std::vector<std::byte> bytes;
  u32 version = 3;
  u64 alignment = 32;
  u64 data_start = 0;
  std::vector<KeyValue> values;
  std::vector<TensorInfo> tensors;
};

// Parses a header from the first bytes of a file of `file_size` bytes. Fails on malformed input; gives
// nullopt when `prefix` ends before the header does. Allocates in proportion to `prefix`, whatever its counts
// claim.
Result<std::optional<GgufHeader>> parse_header(std::vector<std::byte> prefix, u64 file_size,
                                               const std::string& name);

// Reads ever larger prefixes until the header is complete; gives up at the end of the file or at 256 MiB,
// many times the size of any real header and still within the reach of a 32-bit address space.
Task<Result<GgufHeader>> read_header(Source& source);

// A model file, in one part or several: metadata of the first part, tensors of all, and the sources to read
// them from.
class Gguf {
 public:
  // `parts` in order; a model of one file has one. Checks split.count and that no tensor occurs twice.
  static Task<Result<Gguf>> open(std::vector<std::unique_ptr<Source>> parts);

  const std::vector<KeyValue>& values() const { return headers_[0].values; }
  const std::vector<TensorInfo>& tensors() const { return tensors_; }
  const std::string& name() const { return parts_[0]->name(); }
  u64 file_bytes() const;

  const Value* find(std::string_view key) const;
  const TensorInfo* tensor(std::string_view name) const;

  // Absent -> nullopt; present with another kind of value -> an error that names the key.
  Result<std::optional<u64>> get_uint(std::string_view key) const;
  Result<std::optional<f64>> get_float(std::string_view key) const;
  Result<std::optional<bool>> get_bool(std::string_view key) const;
  Result<std::optional<std::string_view>> get_string(std::string_view key) const;

  // `offset` counts from the tensor's first byte.
  Task<Status> read(const TensorInfo& tensor, u64 offset, MutableBytes out);
  Source& source(u32 part) { return *parts_[part]; }

 private:
  Gguf() = default;
  std::vector<std::unique_ptr<Source>> parts_;
  std::vector<GgufHeader> headers_;
  std::vector<TensorInfo> tensors_;
  std::unordered_map<std::string_view, u32> value_index_, tensor_index_;
};

// "x-00001-of-00003.gguf" -> the paths of all parts, in order; any other path -> itself alone. An error for
// names such as part 4 of 3. A path to any part gives the whole list.
Result<std::vector<std::string>> split_paths(const std::string& path);

// open_file() on every part, then Gguf::open().
Result<Gguf> open_gguf(const std::string& path);

}  // namespace bezel
