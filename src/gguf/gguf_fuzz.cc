// Any bytes give a header whose every part can be used, or an error in a full sentence.
#include <cstring>
#include <limits>

#include "base/check.h"
#include "gguf/gguf.h"
#include "gguf/writer.h"

namespace bezel {
namespace {

std::size_t touch(const Value& value) {
  std::size_t sum = static_cast<std::size_t>(value.type()) + value.raw().size() + value.as_int().has_value() +
                    value.as_uint().has_value() + value.as_float().has_value() + value.as_bool().has_value();
  if (const auto text = value.as_string()) {
    for (const char c : *text) sum += static_cast<u8>(c);
  }
  if (const auto ints = value.as_ints()) CHECK(ints->size() == value.count());
  if (const auto floats = value.as_floats()) CHECK(floats->size() == value.count());
  if (const auto strings = value.as_strings()) {
    CHECK(strings->size() == value.count());
    for (const std::string_view text : *strings) {
      for (const char c : text) sum += static_cast<u8>(c);
    }
  }
  return sum;
}

void check_tensors(const GgufHeader& header, u64 file_size) {
  for (const TensorInfo& tensor : header.tensors) {
    CHECK(tensor.name.size() <= 63 && tensor.dims >= 1 && tensor.dims <= 4);
    CHECK(tensor.offset >= header.data_start && tensor.offset <= file_size);
    CHECK(tensor.bytes > 0 && tensor.bytes <= file_size - tensor.offset);
    CHECK(tensor.row_bytes() * tensor.rows() == tensor.bytes);
    CHECK(dtype_bytes(tensor.type, tensor.elements()) == tensor.bytes);
  }
}

// What was read can be written, and read again.
void check_copy(const GgufHeader& header) {
  GgufWriter writer;
  for (const KeyValue& entry : header.values) writer.set_value(entry.key, entry.value);
  for (const TensorInfo& tensor : header.tensors) {
    writer.add_tensor(tensor.name, tensor.type, std::span(tensor.ne).first(tensor.dims));
  }
  std::vector<std::byte> bytes = writer.header();
  const u64 size = bytes.size() + writer.data_bytes();
  const auto again = parse_header(std::move(bytes), size, "copy");
  CHECK(again && *again);
  CHECK((*again)->values.size() == header.values.size() && (*again)->tensors.size() == header.tensors.size());
}

void check_parse(Bytes bytes, u64 file_size) {
  const auto header = parse_header({bytes.begin(), bytes.end()}, file_size, "fuzz");
  if (!header) {
    CHECK(header.error().message.starts_with("fuzz: ") && header.error().message.ends_with('.'));
    return;
  }
  CHECK(*header || bytes.size() < file_size);
  if (!*header) return;
  std::size_t sum = 0;
  for (const KeyValue& entry : (*header)->values) sum += touch(entry.value) + quote(entry.key).size();
  CHECK(sum > 0 || (*header)->values.empty());
  check_tensors(**header, file_size);
  if (file_size == bytes.size()) check_copy(**header);
}

}  // namespace
}  // namespace bezel

// The bytes once as a whole file and once as the beginning of the largest one.
extern "C" int LLVMFuzzerTestOneInput(const bezel::u8* data, std::size_t size) {
  const bezel::Bytes bytes = std::as_bytes(std::span(data, size));
  bezel::check_parse(bytes, size);
  bezel::check_parse(bytes, std::numeric_limits<bezel::u64>::max());
  return 0;
}
