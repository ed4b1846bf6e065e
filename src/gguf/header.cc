#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "base/format_text.h"
#include "gguf/gguf.h"

namespace bezel {
namespace {

constexpr u64 kFirstRead = 1 << 20;
constexpr u64 kMaxHeader = 256 << 20;
constexpr u64 kMaxEntries = 65'536;  // of metadata, and of tensors
constexpr u64 kMinValueBytes = 13;
constexpr u64 kMinTensorBytes = 32;
constexpr u64 kMaxKey = 65'535;
constexpr u64 kMaxName = 63;
constexpr u64 kMaxString = 16 << 20;
constexpr u64 kMaxElements = 64 << 20;
constexpr u64 kMaxAlignment = 1 << 20;
constexpr u64 kMax = std::numeric_limits<u64>::max();

std::string_view text(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

// Walks the prefix once. Tensor and string contents stay where they are; the results are views of them.
class HeaderParser {
 public:
  HeaderParser(Bytes prefix, u64 file_size, const std::string& name)
      : prefix_(prefix), file_size_(file_size), name_(name) {
    CHECK(prefix.size() <= file_size);
  }

  // Without the bytes: the caller owns them.
  Result<std::optional<GgufHeader>> parse() {
    const Status status = parse_all();
    if (status) return std::move(header_);
    if (needs_more_) return std::nullopt;
    return std::unexpected(status.error());
  }

 private:
  template <class... Args>
  std::unexpected<Error> bad(std::format_string<Args...> format, Args&&... args) const {
    return invalid("{}: {}", name_, format_text(format, std::forward<Args>(args)...));
  }

  template <class... Args>
  std::unexpected<Error> unsupported(std::format_string<Args...> format, Args&&... args) const {
    return fail(ErrorKind::kUnsupported, "{}: {}", name_, format_text(format, std::forward<Args>(args)...));
  }

  u64 left_in_file() const { return file_size_ - position_; }

  // Every byte of the header comes from here. Bytes that the file has and the prefix has not stop the parse
  // with needs_more_ set; its error is never shown.
  Result<Bytes> take(u64 size) {
    if (size > left_in_file()) {
      return bad("{} {} needs {} bytes at byte {}, past the end of the file ({} bytes).", section_,
                 index_ + 1, size, position_, file_size_);
    }
    if (size > prefix_.size() - position_) {
      needs_more_ = true;
      return std::unexpected(Error{});
    }
    const Bytes bytes = prefix_.subspan(position_, static_cast<std::size_t>(size));
    position_ += bytes.size();
    return bytes;
  }

  template <class T>
  Result<T> number() {
    const Bytes bytes = TRY(take(sizeof(T)));
    T value;
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }

  Result<Bytes> string(std::string_view what, u64 limit) {
    const u64 length = TRY(number<u64>());
    if (length > limit) {
      return bad("{} {} has a {} of {} bytes; at most {} are allowed.", section_, index_ + 1, what, length,
                 limit);
    }
    return take(length);
  }

  Status parse_all() {
    TRY(parse_magic());
    const u64 tensors = TRY(parse_count("tensors", kMinTensorBytes));
    const u64 values = TRY(parse_count("metadata entries", kMinValueBytes));
    section_ = "Metadata entry";
    for (index_ = 0; index_ < values; ++index_) header_.values.push_back(TRY(parse_key_value()));
    TRY(check_unique("Key", header_.values, &KeyValue::key));
    TRY(set_alignment());
    section_ = "Tensor";
    for (index_ = 0; index_ < tensors; ++index_) header_.tensors.push_back(TRY(parse_tensor()));
    TRY(check_unique("Tensor", header_.tensors, &TensorInfo::name));
    return place_tensors();
  }

  Status parse_magic() {
    if (file_size_ < 4) return bad("This is not a GGUF file: it has only {} bytes.", file_size_);
    const Bytes magic = TRY(take(4));
    if (text(magic) != "GGUF") {
      return bad("This is not a GGUF file: it starts with {} instead of 'GGUF'.", quote(text(magic)));
    }
    index_ = 1;
    header_.version = TRY(number<u32>());
    if (header_.version >= 0x10000) {
      return unsupported("This is a big-endian GGUF file; only little-endian files can be read.");
    }
    if (header_.version == 1) {
      return unsupported(
          "This is a GGUF file of version 1, which is obsolete; versions 2 and 3 can be read.");
    }
    if (header_.version != 2 && header_.version != 3) {
      return unsupported("This is a GGUF file of version {}; versions 2 and 3 can be read.", header_.version);
    }
    return {};
  }

  // Checked against the file and not the prefix: a count that the file cannot hold fails before anything is
  // read for it.
  Result<u64> parse_count(std::string_view what, u64 min_bytes) {
    ++index_;
    const u64 count = TRY(number<u64>());
    if (count > kMaxEntries)
      return bad("The file claims {} {}; at most {} are allowed.", count, what, kMaxEntries);
    if (count > left_in_file() / min_bytes) {
      return bad("The file claims {} {}, but has room for at most {} in its {} bytes.", count, what,
                 left_in_file() / min_bytes, file_size_);
    }
    return count;
  }

  Result<KeyValue> parse_key_value() {
    const std::string_view key = text(TRY(string("key", kMaxKey)));
    if (key.empty()) return bad("Metadata entry {} has an empty key.", index_ + 1);
    const u32 id = TRY(number<u32>());
    if (id > static_cast<u32>(ValueType::kF64))
      return bad("Key {} has the unknown value type {}.", quote(key), id);
    const auto type = static_cast<ValueType>(id);
    if (type == ValueType::kArray) return KeyValue{key, TRY(parse_array(key))};
    if (type == ValueType::kString) return KeyValue{key, Value(type, TRY(string("string", kMaxString)))};
    const Bytes raw = TRY(take(value_size(type)));
    if (type == ValueType::kBool) TRY(check_bools(key, raw));
    return KeyValue{key, Value(type, raw)};
  }

  Result<Value> parse_array(std::string_view key) {
    const u32 id = TRY(number<u32>());
    const u64 count = TRY(number<u64>());
    if (id > static_cast<u32>(ValueType::kF64)) {
      return bad("The array {} has the unknown element type {}.", quote(key), id);
    }
    const auto type = static_cast<ValueType>(id);
    if (type == ValueType::kArray) return unsupported("Key {} holds an array of arrays.", quote(key));
    const bool strings = type == ValueType::kString;
    const u64 element_bytes = strings ? sizeof(u64) : value_size(type);
    const u64 limit = std::min(kMaxElements, left_in_file() / element_bytes);
    if (count > limit) {
      return bad("The array {} claims {} elements; at most {} are possible here.", quote(key), count, limit);
    }
    const std::size_t start = position_;
    if (strings) {
      for (u64 i = 0; i < count; ++i) TRY(string("string", kMaxString));
    } else {
      const Bytes raw = TRY(take(count * element_bytes));
      if (type == ValueType::kBool) TRY(check_bools(key, raw));
    }
    return Value::array(type, count, prefix_.subspan(start, position_ - start));
  }

  Status check_bools(std::string_view key, Bytes raw) const {
    const auto wrong = std::ranges::find_if(raw, [](std::byte b) { return b > std::byte{1}; });
    if (wrong == raw.end()) return {};
    return bad("Key {} has a boolean of value {}; only 0 and 1 are allowed.", quote(key),
               std::to_integer<u32>(*wrong));
  }

  template <class T>
  Status check_unique(std::string_view what, const std::vector<T>& items, std::string_view T::* name) const {
    std::vector<std::string_view> names;
    names.reserve(items.size());
    for (const T& item : items) names.push_back(item.*name);
    std::ranges::sort(names);
    const auto twice = std::ranges::adjacent_find(names);
    if (twice == names.end()) return {};
    return bad("{} {} occurs more than once.", what, quote(*twice));
  }

  Status set_alignment() {
    const auto found = std::ranges::find(header_.values, "general.alignment", &KeyValue::key);
    if (found == header_.values.end()) return {};
    if (found->value.type() != ValueType::kU32) return bad("Key 'general.alignment' is not a u32.");
    header_.alignment = *found->value.as_uint();
    if (!std::has_single_bit(header_.alignment) || header_.alignment > kMaxAlignment) {
      return bad("The alignment of {} bytes is not a power of two from 1 to {}.", header_.alignment,
                 kMaxAlignment);
    }
    return {};
  }

  // Leaves the offset relative to the data section, whose start is known after the last tensor.
  Result<TensorInfo> parse_tensor() {
    TensorInfo tensor;
    tensor.name = text(TRY(string("name", kMaxName)));
    tensor.dims = TRY(number<u32>());
    if (tensor.dims < 1 || tensor.dims > tensor.ne.size()) {
      return bad("Tensor {} has {} dimensions; 1 to {} are allowed.", quote(tensor.name), tensor.dims,
                 tensor.ne.size());
    }
    u64 elements = 1;
    for (u32 i = 0; i < tensor.dims; ++i) {
      const u64 ne = TRY(number<u64>());
      if (ne == 0) return bad("Dimension {} of tensor {} is 0.", i, quote(tensor.name));
      if (ne > kMax / elements) return bad("Tensor {} has more than 2^64 elements.", quote(tensor.name));
      tensor.ne[i] = ne;
      elements *= ne;
    }
    const u32 id = TRY(number<u32>());
    const DTypeInfo* type = find_dtype(id);
    if (type == nullptr) return unsupported("Tensor {} has the unsupported type {}.", quote(tensor.name), id);
    tensor.type = type->type;
    if (tensor.ne[0] % type->block_elements != 0) {
      return bad("Rows of tensor {} have {} elements, not a multiple of the {} in a block of {}.",
                 quote(tensor.name), tensor.ne[0], type->block_elements, type->name);
    }
    const u64 blocks = elements / type->block_elements;
    if (blocks > kMax / type->block_bytes)
      return bad("Tensor {} has more than 2^64 bytes.", quote(tensor.name));
    tensor.bytes = blocks * type->block_bytes;
    tensor.offset = TRY(number<u64>());
    if (tensor.offset % header_.alignment != 0) {
      return bad("Tensor {} starts at offset {}, not a multiple of the alignment of {}.", quote(tensor.name),
                 tensor.offset, header_.alignment);
    }
    return tensor;
  }

  Status place_tensors() {
    header_.data_start = (position_ + header_.alignment - 1) / header_.alignment * header_.alignment;
    const u64 data_bytes = file_size_ - std::min(file_size_, header_.data_start);
    std::vector<const TensorInfo*> order;
    order.reserve(header_.tensors.size());
    for (TensorInfo& tensor : header_.tensors) {
      if (tensor.offset > data_bytes || tensor.bytes > data_bytes - tensor.offset) {
        return bad(
            "Tensor {} has {} bytes at offset {} of the data, which starts at byte {}: past the end of the "
            "file ({} bytes).",
            quote(tensor.name), tensor.bytes, tensor.offset, header_.data_start, file_size_);
      }
      tensor.offset += header_.data_start;
      order.push_back(&tensor);
    }
    std::ranges::sort(order, {}, &TensorInfo::offset);
    for (std::size_t i = 1; i < order.size(); ++i) {
      const TensorInfo &a = *order[i - 1], &b = *order[i];
      if (a.offset + a.bytes > b.offset) {
        return bad("Tensors {} and {} overlap: one ends at byte {}, the other starts at byte {}.",
                   quote(a.name), quote(b.name), a.offset + a.bytes, b.offset);
      }
    }
    return {};
  }

  Bytes prefix_;
  u64 file_size_;
  const std::string& name_;
  std::size_t position_ = 0;
  std::string_view section_ = "Header field";  // what messages call the thing being read, with its index
  u64 index_ = 0;
  bool needs_more_ = false;
  GgufHeader header_;
};

}  // namespace

Result<std::optional<GgufHeader>> parse_header(std::vector<std::byte> prefix, u64 file_size,
                                               const std::string& name) {
  auto header = TRY(HeaderParser(prefix, file_size, name).parse());
  if (header) header->bytes = std::move(prefix);
  return header;
}

Task<Result<GgufHeader>> read_header(Source& source) {
  const u64 file_size = source.size();
  std::vector<std::byte> prefix;
  for (u64 want = kFirstRead; want <= kMaxHeader; want *= 2) {
    const std::size_t have = prefix.size();
    prefix.resize(static_cast<std::size_t>(std::min(want, file_size)));
    CO_TRY(co_await source.read(have, MutableBytes(prefix).subspan(have)));
    auto header = CO_TRY(HeaderParser(prefix, file_size, source.name()).parse());
    if (header) {
      header->bytes = std::move(prefix);
      co_return std::move(*header);
    }
  }
  co_return invalid("{}: The header has more than {} bytes.", source.name(), kMaxHeader);
}

}  // namespace bezel
