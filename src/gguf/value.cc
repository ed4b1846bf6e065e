#include <bit>
#include <cstring>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "gguf/gguf.h"

namespace bezel {
namespace {

static_assert(std::endian::native == std::endian::little, "values are read as they are stored");

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// `convert` of the number at `from`, in its own type; nullopt for strings and arrays.
template <class F>
auto with_number(ValueType type, const std::byte* from, F convert) -> decltype(convert(u8{})) {
  switch (type) {
    case ValueType::kU8:
      return convert(load<u8>(from));
    case ValueType::kI8:
      return convert(load<i8>(from));
    case ValueType::kU16:
      return convert(load<u16>(from));
    case ValueType::kI16:
      return convert(load<i16>(from));
    case ValueType::kU32:
      return convert(load<u32>(from));
    case ValueType::kI32:
      return convert(load<i32>(from));
    case ValueType::kF32:
      return convert(load<f32>(from));
    case ValueType::kBool:
      return convert(load<u8>(from) != 0);
    case ValueType::kU64:
      return convert(load<u64>(from));
    case ValueType::kI64:
      return convert(load<i64>(from));
    case ValueType::kF64:
      return convert(load<f64>(from));
    case ValueType::kString:
    case ValueType::kArray:
      return std::nullopt;
  }
  return std::nullopt;
}

template <class To>
struct ToInteger {
  std::optional<To> operator()(auto number) const {
    using From = decltype(number);
    if constexpr (std::is_integral_v<From> && !std::is_same_v<From, bool>) {
      if (std::in_range<To>(number)) return static_cast<To>(number);
    }
    return std::nullopt;
  }
};

struct ToFloat {
  std::optional<f64> operator()(auto number) const {
    if constexpr (std::is_same_v<decltype(number), bool>) return std::nullopt;
    return static_cast<f64>(number);
  }
};

template <class To, class F>
std::optional<std::vector<To>> convert_all(ValueType element, u64 count, Bytes raw, F convert) {
  const u32 size = value_size(element);
  if (size == 0) return std::nullopt;
  std::vector<To> numbers;
  numbers.reserve(static_cast<std::size_t>(count));
  for (std::size_t at = 0; at < raw.size(); at += size) {
    const auto number = with_number(element, raw.data() + at, convert);
    if (!number) return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

}  // namespace

u32 value_size(ValueType type) {
  switch (type) {
    case ValueType::kU8:
    case ValueType::kI8:
    case ValueType::kBool:
      return 1;
    case ValueType::kU16:
    case ValueType::kI16:
      return 2;
    case ValueType::kU32:
    case ValueType::kI32:
    case ValueType::kF32:
      return 4;
    case ValueType::kU64:
    case ValueType::kI64:
    case ValueType::kF64:
      return 8;
    case ValueType::kString:
    case ValueType::kArray:
      return 0;
  }
  return 0;
}

Value::Value(ValueType type, Bytes raw) : type_(type), raw_(raw) {
  CHECK(type == ValueType::kString || (value_size(type) != 0 && raw.size() == value_size(type)));
}

Value Value::array(ValueType element, u64 count, Bytes raw) {
  CHECK(element == ValueType::kString ||
        (value_size(element) != 0 && raw.size() == count * value_size(element)));
  Value value;
  value.type_ = ValueType::kArray;
  value.element_ = element;
  value.count_ = count;
  value.raw_ = raw;
  return value;
}

std::optional<i64> Value::as_int() const { return with_number(type_, raw_.data(), ToInteger<i64>{}); }
std::optional<u64> Value::as_uint() const { return with_number(type_, raw_.data(), ToInteger<u64>{}); }
std::optional<f64> Value::as_float() const { return with_number(type_, raw_.data(), ToFloat{}); }

std::optional<bool> Value::as_bool() const {
  if (type_ != ValueType::kBool) return std::nullopt;
  return load<u8>(raw_.data()) != 0;
}

std::optional<std::string_view> Value::as_string() const {
  if (type_ != ValueType::kString) return std::nullopt;
  return std::string_view(reinterpret_cast<const char*>(raw_.data()), raw_.size());
}

std::optional<std::vector<i64>> Value::as_ints() const {
  if (!is_array()) return std::nullopt;
  return convert_all<i64>(element_, count_, raw_, [](auto number) -> std::optional<i64> {
    if constexpr (std::is_same_v<decltype(number), bool>) return number ? 1 : 0;
    return ToInteger<i64>{}(number);
  });
}

std::optional<std::vector<f64>> Value::as_floats() const {
  if (!is_array()) return std::nullopt;
  return convert_all<f64>(element_, count_, raw_, ToFloat{});
}

std::optional<std::vector<std::string_view>> Value::as_strings() const {
  if (!is_array() || element_ != ValueType::kString) return std::nullopt;
  std::vector<std::string_view> strings;
  strings.reserve(static_cast<std::size_t>(count_));
  Bytes left = raw_;
  while (!left.empty()) {
    CHECK(left.size() >= sizeof(u64));
    const u64 length = load<u64>(left.data());
    left = left.subspan(sizeof(u64));
    CHECK(length <= left.size());
    const auto bytes = left.first(static_cast<std::size_t>(length));
    strings.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    left = left.subspan(bytes.size());
  }
  return strings;
}

}  // namespace bezel
