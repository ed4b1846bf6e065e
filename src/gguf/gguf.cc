#include "gguf/gguf.h"

#include <algorithm>

#include "base/format_text.h"

namespace bezel {
namespace {

const Value* find_value(const GgufHeader& header, std::string_view key) {
  const auto found = std::ranges::find(header.values, key, &KeyValue::key);
  return found == header.values.end() ? nullptr : &found->value;
}

template <class T>
Result<std::optional<T>> get(const Value* value, std::string_view key, const std::string& file,
                             std::optional<T> (Value::*convert)() const, std::string_view wanted) {
  if (value == nullptr) return std::nullopt;
  const std::optional<T> converted = (value->*convert)();
  if (!converted) return invalid("{}: Key {} is not {}.", file, quote(key), wanted);
  return converted;
}

Result<std::optional<u64>> header_uint(const GgufHeader& header, std::string_view key,
                                       const std::string& file) {
  return get(find_value(header, key), key, file, &Value::as_uint, "a whole number from 0");
}

// A part says which one it is, of how many; a file that says nothing is whole.
Status check_split(const GgufHeader& header, const std::string& file, u64 part, u64 parts) {
  const u64 no = TRY(header_uint(header, "split.no", file)).value_or(0);
  const u64 count = std::max<u64>(TRY(header_uint(header, "split.count", file)).value_or(1), 1);
  if (count != parts) {
    return invalid("{}: The file belongs to a model of {} parts, but {} {} given.", file, count, parts,
                   parts == 1 ? "was" : "were");
  }
  if (no != part)
    return invalid("{}: The file is part {} and stands in the place of part {}.", file, no, part);
  return {};
}

bool digits(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

u32 to_number(std::string_view text) {
  u32 number = 0;
  for (const char c : text) number = number * 10 + static_cast<u32>(c - '0');
  return number;
}

}  // namespace

Task<Result<Gguf>> Gguf::open(std::vector<std::unique_ptr<Source>> parts) {
  if (parts.empty()) co_return invalid("A model has at least one file; none was given.");
  Gguf gguf;
  gguf.parts_ = std::move(parts);
  const u32 count = static_cast<u32>(gguf.parts_.size());
  for (u32 part = 0; part < count; ++part) {
    Source& source = *gguf.parts_[part];
    GgufHeader header = CO_TRY(co_await read_header(source));
    CO_TRY(check_split(header, source.name(), part, count));
    for (TensorInfo tensor : header.tensors) {
      tensor.part = part;
      const auto index = static_cast<u32>(gguf.tensors_.size());
      if (!gguf.tensor_index_.emplace(tensor.name, index).second) {
        co_return invalid("{}: Tensor {} is in an earlier part too.", source.name(), quote(tensor.name));
      }
      gguf.tensors_.push_back(tensor);
    }
    gguf.headers_.push_back(std::move(header));
  }
  for (const KeyValue& entry : gguf.values()) {
    gguf.value_index_.emplace(entry.key, static_cast<u32>(gguf.value_index_.size()));
  }
  const auto total = CO_TRY(gguf.get_uint("split.tensors.count"));
  if (total && *total != gguf.tensors_.size()) {
    co_return invalid("{}: The model should have {} tensors in all; its files have {}.", gguf.name(), *total,
                      gguf.tensors_.size());
  }
  co_return std::move(gguf);
}

u64 Gguf::file_bytes() const {
  u64 bytes = 0;
  for (const auto& part : parts_) bytes += part->size();
  return bytes;
}

const Value* Gguf::find(std::string_view key) const {
  const auto found = value_index_.find(key);
  return found == value_index_.end() ? nullptr : &values()[found->second].value;
}

const TensorInfo* Gguf::tensor(std::string_view name) const {
  const auto found = tensor_index_.find(name);
  return found == tensor_index_.end() ? nullptr : &tensors_[found->second];
}

Result<std::optional<u64>> Gguf::get_uint(std::string_view key) const {
  return get(find(key), key, name(), &Value::as_uint, "a whole number from 0");
}

Result<std::optional<f64>> Gguf::get_float(std::string_view key) const {
  return get(find(key), key, name(), &Value::as_float, "a number");
}

Result<std::optional<bool>> Gguf::get_bool(std::string_view key) const {
  return get(find(key), key, name(), &Value::as_bool, "a boolean");
}

Result<std::optional<std::string_view>> Gguf::get_string(std::string_view key) const {
  return get(find(key), key, name(), &Value::as_string, "a string");
}

Task<Status> Gguf::read(const TensorInfo& tensor, u64 offset, MutableBytes out) {
  if (offset > tensor.bytes || out.size() > tensor.bytes - offset) {
    co_return invalid("{}: Reading {} bytes at offset {} of tensor {} goes past its end ({} bytes).", name(),
                      out.size(), offset, quote(tensor.name), tensor.bytes);
  }
  co_return co_await source(tensor.part).read(tensor.offset + offset, out);
}

Result<std::vector<std::string>> split_paths(const std::string& path) {
  // "-00001-of-00003.gguf"
  constexpr std::size_t kDigits = 5, kNumber = 1, kOf = 6, kCount = 10, kEnd = 15, kLength = 20;
  if (path.size() < kLength) return std::vector{path};
  const std::string_view stem = std::string_view(path).substr(0, path.size() - kLength);
  const std::string_view tail = std::string_view(path).substr(stem.size());
  const std::string_view number = tail.substr(kNumber, kDigits), count = tail.substr(kCount, kDigits);
  if (tail[0] != '-' || tail.substr(kOf, kCount - kOf) != "-of-" || tail.substr(kEnd) != ".gguf" ||
      !digits(number) || !digits(count)) {
    return std::vector{path};
  }
  const u32 parts = to_number(count);
  if (to_number(number) < 1 || to_number(number) > parts) {
    return invalid("{} is named as part {} of {}; parts count from 1.", path, to_number(number), parts);
  }
  std::vector<std::string> paths;
  for (u32 part = 1; part <= parts; ++part)
    paths.push_back(format_text("{}-{:05}-of-{}.gguf", stem, part, count));
  return paths;
}

Result<Gguf> open_gguf(const std::string& path) {
  const std::vector<std::string> paths = TRY(split_paths(path));
  std::vector<std::unique_ptr<Source>> parts;
  for (const std::string& part : paths) {
    auto source = open_file(part);
    if (!source && paths.size() > 1) {
      return fail(source.error().kind, "The model has {} parts, and part {} is not there: {}", paths.size(),
                  parts.size() + 1, source.error().message);
    }
    parts.push_back(TRY(std::move(source)));
  }
  return run_now(Gguf::open(std::move(parts)));
}

}  // namespace bezel
