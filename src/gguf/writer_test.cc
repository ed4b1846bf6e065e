#include "gguf/writer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "support.h"
#include "temp_dir.h"

namespace bezel {
namespace {

std::vector<std::byte> whole_file(const GgufWriter& writer) {
  std::vector<std::byte> bytes = writer.header();
  bytes.resize(static_cast<std::size_t>(bytes.size() + writer.data_bytes()));
  return bytes;
}

Result<Gguf> open_bytes(std::vector<std::byte> bytes) {
  std::vector<std::unique_ptr<Source>> parts;
  parts.push_back(memory_source(std::move(bytes)));
  return run_now(Gguf::open(std::move(parts)));
}

template <class T>
Bytes raw(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

TEST(GgufWriter, EverySetterReadsBack) {
  GgufWriter writer;
  writer.set_uint("uint", 4'000'000'000);
  writer.set_u64("u64", ~u64{0});
  writer.set_int("int", -5);
  writer.set_float("float", 1.5F);
  writer.set_bool("bool", true);
  writer.set_string("string", std::string_view("a\0b", 3));
  writer.set_uints("uints", std::vector<u32>{1, 4'000'000'000});
  writer.set_ints("ints", std::vector<i32>{-1, 7});
  writer.set_floats("floats", std::vector<f32>{0.25F, -2});
  writer.set_bools("bools", {true, false, true});
  writer.set_strings("strings", std::vector<std::string>{"", "x", "\xff\n"});
  writer.set_strings("none", {});
  const auto gguf = open_bytes(whole_file(writer));
  ASSERT_OK(gguf);
  EXPECT_EQ(gguf->values().size(), 12U);
  EXPECT_EQ(gguf->find("uint")->as_uint(), 4'000'000'000);
  EXPECT_EQ(gguf->find("u64")->as_uint(), ~u64{0});
  EXPECT_EQ(gguf->find("u64")->as_int(), std::nullopt);
  EXPECT_EQ(gguf->find("int")->as_int(), -5);
  EXPECT_EQ(gguf->find("int")->as_uint(), std::nullopt);
  EXPECT_EQ(gguf->find("int")->as_float(), -5.0);
  EXPECT_EQ(gguf->find("float")->as_float(), 1.5);
  EXPECT_EQ(gguf->find("float")->as_int(), std::nullopt);
  EXPECT_EQ(gguf->find("bool")->as_bool(), true);
  EXPECT_EQ(gguf->find("bool")->as_int(), std::nullopt);
  EXPECT_EQ(gguf->find("bool")->as_float(), std::nullopt);
  EXPECT_EQ(gguf->find("string")->as_string(), std::string_view("a\0b", 3));
  EXPECT_EQ(gguf->find("string")->as_uint(), std::nullopt);
  EXPECT_EQ(gguf->find("uints")->as_ints(), (std::vector<i64>{1, 4'000'000'000}));
  EXPECT_EQ(gguf->find("ints")->as_ints(), (std::vector<i64>{-1, 7}));
  EXPECT_EQ(gguf->find("ints")->as_floats(), (std::vector<f64>{-1, 7}));
  EXPECT_EQ(gguf->find("ints")->as_int(), std::nullopt);
  EXPECT_EQ(gguf->find("ints")->as_strings(), std::nullopt);
  EXPECT_EQ(gguf->find("floats")->as_floats(), (std::vector<f64>{0.25, -2}));
  EXPECT_EQ(gguf->find("floats")->as_ints(), std::nullopt);
  EXPECT_EQ(gguf->find("bools")->as_ints(), (std::vector<i64>{1, 0, 1}));
  EXPECT_EQ(gguf->find("strings")->as_strings(), (std::vector<std::string_view>{"", "x", "\xff\n"}));
  EXPECT_EQ(gguf->find("strings")->as_ints(), std::nullopt);
  EXPECT_EQ(gguf->find("none")->as_strings()->size(), 0U);
  EXPECT_EQ(gguf->find("absent"), nullptr);
}

// The value before, as a scalar and as an array of two, and the same after writing and reading.
template <class T>
void expect_round_trip(ValueType type, T value) {
  const std::vector<T> one = {value}, two = {value, T{}};
  GgufWriter writer;
  writer.set_value("scalar", Value(type, raw(one)));
  writer.set_value("array", Value::array(type, 2, raw(two)));
  const auto gguf = open_bytes(whole_file(writer));
  ASSERT_OK(gguf);
  const Value& scalar = *gguf->find("scalar");
  const Value& array = *gguf->find("array");
  EXPECT_EQ(scalar.type(), type);
  EXPECT_TRUE(std::ranges::equal(scalar.raw(), raw(one)));
  EXPECT_EQ(array.type(), ValueType::kArray);
  EXPECT_EQ(array.element_type(), type);
  EXPECT_EQ(array.count(), 2U);
  EXPECT_TRUE(std::ranges::equal(array.raw(), raw(two)));
  if (type == ValueType::kBool) {
    EXPECT_EQ(scalar.as_bool(), value != T{});
  } else {
    EXPECT_EQ(scalar.as_float(), static_cast<f64>(value));
    EXPECT_EQ(array.as_floats(), (std::vector<f64>{static_cast<f64>(value), 0}));
  }
  if constexpr (std::is_integral_v<T>) {
    if (std::in_range<i64>(value)) EXPECT_EQ(array.as_ints(), (std::vector<i64>{static_cast<i64>(value), 0}));
  }
}

TEST(GgufWriter, EveryValueTypeRoundTrips) {
  expect_round_trip(ValueType::kU8, std::numeric_limits<u8>::max());
  expect_round_trip(ValueType::kI8, std::numeric_limits<i8>::min());
  expect_round_trip(ValueType::kU16, std::numeric_limits<u16>::max());
  expect_round_trip(ValueType::kI16, std::numeric_limits<i16>::min());
  expect_round_trip(ValueType::kU32, std::numeric_limits<u32>::max());
  expect_round_trip(ValueType::kI32, std::numeric_limits<i32>::min());
  expect_round_trip(ValueType::kF32, 3.25F);
  expect_round_trip(ValueType::kBool, u8{1});
  expect_round_trip(ValueType::kU64, std::numeric_limits<u64>::max());
  expect_round_trip(ValueType::kI64, std::numeric_limits<i64>::min());
  expect_round_trip(ValueType::kF64, -1e300);
}

TEST(GgufWriter, SettingAKeyAgainReplacesIt) {
  GgufWriter writer;
  writer.set_uint("a", 1);
  writer.set_uint("b", 2);
  writer.set_string("a", "new");
  const auto gguf = open_bytes(whole_file(writer));
  ASSERT_OK(gguf);
  ASSERT_EQ(gguf->values().size(), 2U);
  EXPECT_EQ(gguf->values()[0].value.as_string(), "new");
}

TEST(GgufWriter, CopiesOfRealFilesHaveEqualMetadata) {
  const auto original = open_gguf(data_path("tiny-e2b.gguf"));
  ASSERT_OK(original);
  GgufWriter writer;
  for (const KeyValue& entry : original->values()) writer.set_value(entry.key, entry.value);
  const auto copy = open_bytes(whole_file(writer));
  ASSERT_OK(copy);
  ASSERT_EQ(copy->values().size(), original->values().size());
  for (const KeyValue& entry : original->values()) {
    const Value* value = copy->find(entry.key);
    ASSERT_NE(value, nullptr) << entry.key;
    EXPECT_EQ(value->type(), entry.value.type());
    EXPECT_EQ(value->element_type(), entry.value.element_type());
    EXPECT_TRUE(std::ranges::equal(value->raw(), entry.value.raw())) << entry.key;
  }
}

TEST(GgufWriter, TensorsComeBackFromTheFile) {
  for (const u32 alignment : {0U, 1U, 256U}) {
    const TempDir dir;
    GgufWriter writer;
    if (alignment != 0) writer.set_uint("general.alignment", alignment);
    writer.add_tensor("a", DType::kF32, std::vector<u64>{3});
    writer.add_tensor("b", DType::kQ8_0, std::vector<u64>{64, 2});
    writer.add_tensor("c", DType::kI8, std::vector<u64>{5, 1, 1, 2});
    std::vector<std::vector<std::byte>> data;
    for (const auto& tensor : writer.tensors()) {
      data.emplace_back(static_cast<std::size_t>(tensor.bytes), static_cast<std::byte>(data.size() + 1));
    }
    const std::vector<Bytes> views(data.begin(), data.end());
    ASSERT_OK(write_gguf(dir / "model.gguf", writer, views));

    auto gguf = open_gguf(dir / "model.gguf");
    ASSERT_OK(gguf);
    EXPECT_EQ(gguf->file_bytes(), writer.header().size() + writer.data_bytes());
    ASSERT_EQ(gguf->tensors().size(), 3U);
    EXPECT_EQ(gguf->tensor("b")->ne, (std::array<u64, 4>{64, 2, 1, 1}));
    EXPECT_EQ(gguf->tensor("b")->bytes, 4U * 34);
    EXPECT_EQ(gguf->tensor("b")->row_bytes(), 2U * 34);
    EXPECT_EQ(gguf->tensor("c")->dims, 4U);
    EXPECT_EQ(gguf->tensor("d"), nullptr);
    for (std::size_t i = 0; i < 3; ++i) {
      const TensorInfo& tensor = gguf->tensors()[i];
      EXPECT_EQ(tensor.offset % (alignment == 0 ? 32 : alignment), 0U);
      std::vector<std::byte> read(data[i].size());
      ASSERT_OK(run_now(gguf->read(tensor, 0, read)));
      EXPECT_EQ(read, data[i]);
      const Status past = run_now(gguf->read(tensor, 1, read));
      ASSERT_FALSE(past);
      EXPECT_NE(past.error().message.find("goes past its end"), std::string::npos);
    }
  }
}

TEST(GgufWriter, RefusesDataOfAnotherSize) {
  const TempDir dir;
  GgufWriter writer;
  writer.add_tensor("a", DType::kF32, std::vector<u64>{2});
  const std::vector<std::byte> seven(7);
  const std::vector<Bytes> data = {seven};
  const Status status = write_gguf(dir / "x.gguf", writer, data);
  ASSERT_FALSE(status);
  EXPECT_TRUE(status.error().message.ends_with("Tensor 'a' was declared with 8 bytes and given with 7."));
  EXPECT_FALSE(write_gguf(dir / "x.gguf", writer, {}));
  EXPECT_FALSE(dir.holds("x.gguf"));
  EXPECT_FALSE(dir.holds("x.gguf.partial"));
}

}  // namespace
}  // namespace bezel
