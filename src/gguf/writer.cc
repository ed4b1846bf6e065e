#include "gguf/writer.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "io/output_file.h"

namespace bezel {
namespace {

constexpr u64 kMaxAlignment = 1 << 20;

using Buffer = std::vector<std::byte>;

void put_bytes(Buffer& out, Bytes bytes) { out.insert(out.end(), bytes.begin(), bytes.end()); }

template <class T>
void put(Buffer& out, T value) {
  put_bytes(out, std::as_bytes(std::span(&value, 1)));
}

void put_string(Buffer& out, std::string_view text) {
  put<u64>(out, text.size());
  put_bytes(out, std::as_bytes(std::span(text)));
}

Buffer start_value(ValueType type) {
  Buffer out;
  put(out, type);
  return out;
}

Buffer start_array(ValueType element, u64 count) {
  Buffer out = start_value(ValueType::kArray);
  put(out, element);
  put(out, count);
  return out;
}

template <class T>
Buffer scalar(ValueType type, T value) {
  Buffer out = start_value(type);
  put(out, value);
  return out;
}

template <class T>
Buffer numbers(ValueType element, std::span<const T> values) {
  Buffer out = start_array(element, values.size());
  put_bytes(out, std::as_bytes(values));
  return out;
}

}  // namespace

void GgufWriter::set(std::string_view key, std::vector<std::byte> value) {
  CHECK(!key.empty());
  if (key == "general.alignment") {
    u32 alignment = 0;
    CHECK(tensors_.empty() &&
          std::ranges::equal(Bytes(value).first(sizeof(ValueType)), start_value(ValueType::kU32)));
    std::memcpy(&alignment, value.data() + sizeof(ValueType), sizeof alignment);
    CHECK(std::has_single_bit(alignment) && alignment <= kMaxAlignment);
    alignment_ = alignment;
  }
  const auto found = std::ranges::find(entries_, key, &Entry::key);
  if (found == entries_.end()) {
    entries_.push_back({std::string(key), std::move(value)});
  } else {
    found->value = std::move(value);
  }
}

void GgufWriter::set_uint(std::string_view key, u32 value) { set(key, scalar(ValueType::kU32, value)); }
void GgufWriter::set_u64(std::string_view key, u64 value) { set(key, scalar(ValueType::kU64, value)); }
void GgufWriter::set_int(std::string_view key, i32 value) { set(key, scalar(ValueType::kI32, value)); }
void GgufWriter::set_float(std::string_view key, f32 value) { set(key, scalar(ValueType::kF32, value)); }
void GgufWriter::set_bool(std::string_view key, bool value) { set(key, scalar(ValueType::kBool, u8{value})); }

void GgufWriter::set_string(std::string_view key, std::string_view value) {
  Buffer out = start_value(ValueType::kString);
  put_string(out, value);
  set(key, std::move(out));
}

void GgufWriter::set_uints(std::string_view key, std::span<const u32> values) {
  set(key, numbers(ValueType::kU32, values));
}

void GgufWriter::set_ints(std::string_view key, std::span<const i32> values) {
  set(key, numbers(ValueType::kI32, values));
}

void GgufWriter::set_floats(std::string_view key, std::span<const f32> values) {
  set(key, numbers(ValueType::kF32, values));
}

void GgufWriter::set_bools(std::string_view key, const std::vector<bool>& values) {
  const std::vector<u8> bytes(values.begin(), values.end());
  set(key, numbers(ValueType::kBool, std::span(bytes)));
}

void GgufWriter::set_strings(std::string_view key, std::span<const std::string> values) {
  Buffer out = start_array(ValueType::kString, values.size());
  for (const std::string& value : values) put_string(out, value);
  set(key, std::move(out));
}

void GgufWriter::set_value(std::string_view key, const Value& value) {
  Buffer out =
      value.is_array() ? start_array(value.element_type(), value.count()) : start_value(value.type());
  if (value.type() == ValueType::kString) put<u64>(out, value.raw().size());
  put_bytes(out, value.raw());
  set(key, std::move(out));
}

void GgufWriter::add_tensor(std::string_view name, DType type, std::span<const u64> ne) {
  CHECK(!ne.empty() && ne.size() <= 4 && name.size() <= 63);
  u64 elements = 1;
  for (const u64 n : ne) elements *= n;
  CHECK(elements > 0 && ne[0] % dtype_info(type).block_elements == 0);
  const u64 bytes = dtype_bytes(type, elements);
  tensors_.push_back({std::string(name), type, {ne.begin(), ne.end()}, data_bytes_, bytes});
  data_bytes_ = align(data_bytes_ + bytes);
}

std::vector<std::byte> GgufWriter::header() const {
  Buffer out;
  put_bytes(out, std::as_bytes(std::span(std::string_view("GGUF"))));
  put<u32>(out, 3);
  put<u64>(out, tensors_.size());
  put<u64>(out, entries_.size());
  for (const Entry& entry : entries_) {
    put_string(out, entry.key);
    put_bytes(out, entry.value);
  }
  for (const Placed& tensor : tensors_) {
    put_string(out, tensor.name);
    put<u32>(out, static_cast<u32>(tensor.ne.size()));
    put_bytes(out, std::as_bytes(std::span(tensor.ne)));
    put(out, tensor.type);
    put(out, tensor.offset);
  }
  out.resize(static_cast<std::size_t>(align(out.size())));
  return out;
}

Status write_gguf(const std::string& path, const GgufWriter& writer, std::span<const Bytes> tensor_data) {
  if (tensor_data.size() != writer.tensors().size()) {
    return invalid("{}: {} tensors were declared and {} given.", path, writer.tensors().size(),
                   tensor_data.size());
  }
  OutputFile file = TRY(OutputFile::create(path));
  TRY(file.write(writer.header()));
  for (std::size_t i = 0; i < tensor_data.size(); ++i) {
    const GgufWriter::Placed& tensor = writer.tensors()[i];
    if (tensor_data[i].size() != tensor.bytes) {
      return invalid("{}: Tensor {} was declared with {} bytes and given with {}.", path, quote(tensor.name),
                     tensor.bytes, tensor_data[i].size());
    }
    const bool last = i + 1 == tensor_data.size();
    const u64 next = last ? writer.data_bytes() : writer.tensors()[i + 1].offset;
    const std::vector<std::byte> padding(static_cast<std::size_t>(next - tensor.offset - tensor.bytes));
    TRY(file.write(tensor_data[i]));
    TRY(file.write(padding));
  }
  return file.finish();
}

}  // namespace bezel
