#include "gguf/gguf.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>

#include "base/format_text.h"
#include "gguf/writer.h"
#include "io/output_file.h"
#include "support.h"
#include "temp_folder.h"

namespace bezel {
namespace {

constexpr const char* kModels[] = {"tiny-26b-split.gguf", "tiny-26b.gguf", "tiny-31b.gguf", "tiny-e2b.gguf",
                                   "tiny-e4b.gguf"};

// Bytes of a file, right or wrong, put together field by field.
struct Raw {
  std::vector<std::byte> bytes;
  Raw& text(std::string_view s) {
    for (const char c : s) bytes.push_back(static_cast<std::byte>(c));
    return *this;
  }
  template <class T>
  Raw& number(T value) {
    for (const std::byte b : std::as_bytes(std::span(&value, 1))) bytes.push_back(b);
    return *this;
  }
  Raw& u8(bezel::u8 v) { return number(v); }
  Raw& u32(bezel::u32 v) { return number(v); }
  Raw& u64(bezel::u64 v) { return number(v); }
  Raw& string(std::string_view s) { return u64(s.size()).text(s); }
  Raw& tensor(std::string_view name, const std::vector<bezel::u64>& ne, bezel::u32 type, bezel::u64 offset) {
    string(name).u32(static_cast<bezel::u32>(ne.size()));
    for (const bezel::u64 n : ne) u64(n);
    return u32(type).u64(offset);
  }
  Raw& data(bezel::u64 size) {
    bytes.resize(static_cast<std::size_t>((bytes.size() + 31) / 32 * 32 + size));
    return *this;
  }
};

Raw file(u64 tensors, u64 values, u32 version = 3) {
  return Raw().text("GGUF").u32(version).u64(tensors).u64(values);
}
Raw one_value(u32 type) { return file(0, 1).string("k").u32(type); }
Raw one_tensor(const std::vector<u64>& ne, u32 type = 0, u64 offset = 0) {
  return file(1, 0).tensor("t", ne, type, offset).data(128);
}
Raw aligned_to(u32 alignment) { return file(0, 1).string("general.alignment").u32(4).u32(alignment); }

// "x: " and a full stop are added to `message`.
struct Case {
  std::string name;
  Raw raw;
  std::string message;
};

constexpr u64 kHuge = ~u64{0};
const std::string kLongName(64, 'n');

std::vector<Case> hostile_cases() {
  return {
      {"empty", Raw(), "This is not a GGUF file: it has only 0 bytes"},
      {"magic_only", Raw().text("GGUF"),
       "Header field 2 needs 4 bytes at byte 4, past the end of the file (4 bytes)"},
      {"other_magic", Raw().text("PK\3\4 and more"),
       R"(This is not a GGUF file: it starts with 'PK\x03\x04' instead of 'GGUF')"},
      {"big_endian", file(0, 0, 0x03000000),
       "This is a big-endian GGUF file; only little-endian files can be read"},
      {"version_1", file(0, 0, 1),
       "This is a GGUF file of version 1, which is obsolete; versions 2 and 3 can be read"},
      {"version_4", file(0, 0, 4), "This is a GGUF file of version 4; versions 2 and 3 can be read"},
      {"short_counts", Raw().text("GGUF").u32(3).u64(0).u32(0),
       "Header field 4 needs 8 bytes at byte 16, past the end of the file (20 bytes)"},
      {"tensor_count", file(kHuge, 0),
       "The file claims 18446744073709551615 tensors; at most 65536 are allowed"},
      {"tensor_count_2", file(3, 0).data(64),
       "The file claims 3 tensors, but has room for at most 2 in its 96 bytes"},
      {"value_count", file(0, 65537), "The file claims 65537 metadata entries; at most 65536 are allowed"},
      {"value_count_2", file(0, 2).text("12345678901234567890"),
       "The file claims 2 metadata entries, but has room for at most 1 in its 44 bytes"},
      {"key_length", file(0, 1).u64(kHuge).data(32),
       "Metadata entry 1 has a key of 18446744073709551615 bytes; at most 65535 are allowed"},
      {"key_past_end", file(0, 1).u64(1000).data(32),
       "Metadata entry 1 needs 1000 bytes at byte 32, past the end of the file (64 bytes)"},
      {"key_empty", file(0, 1).string("").u32(4).u32(1), "Metadata entry 1 has an empty key"},
      {"key_twice", file(0, 3).string("k").u32(4).u32(1).string("j").u32(4).u32(1).string("k").u32(0).u8(1),
       "Key 'k' occurs more than once"},
      {"key_escaped", file(0, 1).string("\x1b[2J").u32(13).u32(1),
       R"(Key '\x1b[2J' has the unknown value type 13)"},
      {"value_cut", one_value(12).u32(0),
       "Metadata entry 1 needs 8 bytes at byte 37, past the end of the file (41 bytes)"},
      {"bool_2", one_value(7).u8(2), "Key 'k' has a boolean of value 2; only 0 and 1 are allowed"},
      {"bools_255", one_value(9).u32(7).u64(2).u8(0).u8(255),
       "Key 'k' has a boolean of value 255; only 0 and 1 are allowed"},
      {"string_length", one_value(8).u64((16 << 20) + 1),
       "Metadata entry 1 has a string of 16777217 bytes; at most 16777216 are allowed"},
      {"string_past_end", one_value(8).u64(9).text("12345678"),
       "Metadata entry 1 needs 9 bytes at byte 45, past the end of the file (53 bytes)"},
      {"array_element", one_value(9).u32(13).u64(0), "The array 'k' has the unknown element type 13"},
      {"array_nested", one_value(9).u32(9).u64(1).u32(9).u64(1).u32(9).u64(0),
       "Key 'k' holds an array of arrays"},
      {"array_count", one_value(9).u32(12).u64(0x2000000000000001).data(64),
       "The array 'k' claims 2305843009213693953 elements; at most 9 are possible here"},
      {"array_strings", one_value(9).u32(8).u64(1 << 30).data(64),
       "The array 'k' claims 1073741824 elements; at most 9 are possible here"},
      {"array_string_cut", one_value(9).u32(8).u64(2).string("a").u64(1),
       "Metadata entry 1 needs 1 bytes at byte 66, past the end of the file (66 bytes)"},
      {"alignment_type", file(0, 1).string("general.alignment").u32(10).u64(32),
       "Key 'general.alignment' is not a u32"},
      {"alignment_0", aligned_to(0), "The alignment of 0 bytes is not a power of two from 1 to 1048576"},
      {"alignment_48", aligned_to(48), "The alignment of 48 bytes is not a power of two from 1 to 1048576"},
      {"alignment_2g", aligned_to(0x80000000),
       "The alignment of 2147483648 bytes is not a power of two from 1 to 1048576"},
      {"name_long", file(1, 0).tensor(kLongName, {1}, 0, 0).data(32),
       "Tensor 1 has a name of 64 bytes; at most 63 are allowed"},
      {"name_twice", file(2, 0).tensor("t", {1}, 0, 0).tensor("t", {1}, 0, 32).data(64),
       "Tensor 't' occurs more than once"},
      {"dims_0", one_tensor({}), "Tensor 't' has 0 dimensions; 1 to 4 are allowed"},
      {"dims_5", one_tensor({1, 1, 1, 1, 1}), "Tensor 't' has 5 dimensions; 1 to 4 are allowed"},
      {"dims_zero", one_tensor({4, 0}), "Dimension 1 of tensor 't' is 0"},
      {"dims_product", one_tensor({1ULL << 32, 1ULL << 32}), "Tensor 't' has more than 2^64 elements"},
      {"dims_bytes", one_tensor({1ULL << 62}), "Tensor 't' has more than 2^64 bytes"},
      {"type_retired", one_tensor({32}, 4), "Tensor 't' has the unsupported type 4"},
      {"type_unknown", one_tensor({32}, 0xFFFFFFFF), "Tensor 't' has the unsupported type 4294967295"},
      {"type_block", one_tensor({33}, 8),
       "Rows of tensor 't' have 33 elements, not a multiple of the 32 in a block of Q8_0"},
      {"offset_odd", one_tensor({1}, 0, 16),
       "Tensor 't' starts at offset 16, not a multiple of the alignment of 32"},
      {"offset_past_end", one_tensor({1}, 0, 160),
       "Tensor 't' has 4 bytes at offset 160 of the data, which starts at byte 64: past the end of the file "
       "(192 bytes)"},
      {"offset_wraps", one_tensor({8}, 0, kHuge - 31),
       "Tensor 't' has 32 bytes at offset 18446744073709551584 of the data, which starts at byte 64: past "
       "the end of the file (192 bytes)"},
      {"data_cut", one_tensor({33}),
       "Tensor 't' has 132 bytes at offset 0 of the data, which starts at byte 64: past the end of the file "
       "(192 bytes)"},
      {"overlap", file(2, 0).tensor("a", {9}, 0, 32).tensor("b", {9}, 0, 0).data(128),
       "Tensors 'b' and 'a' overlap: one ends at byte 132, the other starts at byte 128"},
  };
}

Result<std::optional<GgufHeader>> parse(std::vector<std::byte> bytes) {
  const u64 size = bytes.size();
  return parse_header(std::move(bytes), size, "x");
}

TEST(GgufHeader, RefusesHostileFiles) {
  for (const Case& c : hostile_cases()) {
    const auto header = parse(c.raw.bytes);
    ASSERT_FALSE(header) << c.name;
    EXPECT_EQ(header.error().message, "x: " + c.message + ".") << c.name;
    const auto read = run_now(read_header(*memory_source(c.raw.bytes, "x")));
    ASSERT_FALSE(read) << c.name;
    EXPECT_EQ(read.error().message, header.error().message);
  }
}

GgufWriter small_model() {
  GgufWriter writer;
  writer.set_string("general.architecture", "gemma4");
  writer.set_float("eps", 1e-6F);
  writer.set_bools("pattern", {true, false});
  writer.set_strings("tokens", std::vector<std::string>{"<pad>", "a", "b"});
  writer.add_tensor("token_embd.weight", DType::kQ8_0, std::vector<u64>{32, 3});
  writer.add_tensor("output_norm.weight", DType::kF32, std::vector<u64>{32});
  return writer;
}

// The fuzzer starts from these files. They are written anew with BEZEL_WRITE_CORPUS=1.
TEST(GgufHeader, CorpusHoldsTheseCases) {
  std::vector<Case> cases = hostile_cases();
  cases.push_back({"valid", Raw{small_model().header()}.data(small_model().data_bytes()), ""});
  cases.push_back({"valid_empty", file(0, 0, 2), ""});
  for (const Case& c : cases) {
    const std::string path = "tests/corpus/gguf/" + c.name;
    if (std::getenv("BEZEL_WRITE_CORPUS") != nullptr) {
      auto out = OutputFile::create(path);
      ASSERT_OK(out);
      ASSERT_OK(out->write(c.raw.bytes));
      ASSERT_OK(out->finish());
    }
    EXPECT_EQ(read_bytes(path), c.raw.bytes) << c.name;
    if (c.message.empty()) EXPECT_TRUE(parse(c.raw.bytes)) << c.name;
  }
}

TEST(GgufHeader, AcceptsTensorsInAnyOrder) {
  const auto header = parse(
      file(3, 0).tensor("a", {4}, 0, 64).tensor("b", {9}, 0, 0).tensor("c", {1}, 0, 96).data(100).bytes);
  ASSERT_OK(header);
  EXPECT_EQ((*header)->tensors[1].name, "b");
  EXPECT_EQ((*header)->tensors[1].offset, (*header)->data_start);
}

TEST(GgufHeader, RealFilesParse) {
  for (const char* model : kModels) {
    const auto gguf = open_gguf(data_path(model));
    ASSERT_OK(gguf);
    EXPECT_EQ(*gguf->get_string("general.architecture").value(), "gemma4");
    EXPECT_NE(gguf->tensor("token_embd.weight"), nullptr);
    EXPECT_EQ(gguf->find("tokenizer.ggml.tokens")->as_strings()->size(), 48U);
    u64 end = 0;
    for (const TensorInfo& tensor : gguf->tensors()) end = std::max(end, tensor.offset + tensor.bytes);
    EXPECT_LE(end, gguf->file_bytes());
    EXPECT_GT(end + 32, gguf->file_bytes());
  }
}

TEST(GgufHeader, TruncationAtEveryByteIsAnError) {
  const auto bytes = read_bytes(data_path("tiny-e2b.gguf"));
  const auto whole = parse(bytes);
  ASSERT_OK(whole);
  const auto data_start = static_cast<std::size_t>((*whole)->data_start);
  for (std::size_t size = 0; size < data_start; ++size) {
    const std::vector<std::byte> cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    const auto truncated = parse(cut);
    ASSERT_FALSE(truncated) << size;
    ASSERT_TRUE(truncated.error().message.ends_with(".")) << truncated.error().message;
    // The same bytes as the beginning of the whole file are not wrong, only too few.
    const auto prefix = parse_header(cut, bytes.size(), "x");
    ASSERT_OK(prefix);
    if (size + 32 < data_start) ASSERT_FALSE(*prefix) << size;
  }
  const auto exact = parse_header({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(data_start)},
                                  bytes.size(), "x");
  ASSERT_OK(exact);
  EXPECT_TRUE(*exact);
}

TEST(GgufHeader, BitFlipsParseOrGiveASentence) {
  const auto bytes = read_bytes(data_path("tiny-26b.gguf"));
  const auto data_start = static_cast<std::size_t>((*parse(bytes))->data_start);
  std::mt19937 random(1);
  int failed = 0;
  for (int i = 0; i < 4000; ++i) {
    std::vector<std::byte> flipped(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(data_start));
    for (u32 n = 1 + random() % 3; n > 0; --n)
      flipped[random() % data_start] ^= static_cast<std::byte>(1U << random() % 8);
    const auto header = parse_header(std::move(flipped), bytes.size(), "x");
    if (!header) {
      ++failed;
      ASSERT_TRUE(header.error().message.starts_with("x: ") && header.error().message.ends_with("."));
    } else if (*header) {
      for (const KeyValue& entry : (*header)->values) entry.value.as_strings();
      for (const TensorInfo& tensor : (*header)->tensors)
        ASSERT_LE(tensor.offset + tensor.bytes, bytes.size());
    }
  }
  EXPECT_GT(failed, 1000);
}

TEST(GgufHeader, LargeVocabulariesAreQuick) {
  std::vector<std::string> tokens, merges;
  for (int i = 0; i < 262'144; ++i) tokens.push_back("token" + std::to_string(i));
  for (int i = 0; i < 514'906; ++i) merges.push_back("left" + std::to_string(i) + " right");
  GgufWriter writer = small_model();
  writer.set_strings("tokens", tokens);
  writer.set_strings("merges", merges);
  const std::vector<std::byte> bytes = Raw{writer.header()}.data(writer.data_bytes()).bytes;
  ASSERT_GT(bytes.size(), 15U << 20);
  const auto source = memory_source(bytes);

  const auto start = std::chrono::steady_clock::now();
  const auto header = run_now(read_header(*source));
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  ASSERT_OK(header);
  EXPECT_LT(seconds.count(), 5) << "0.04 is usual; the rest is for sanitizers and busy machines";
  const auto read = header->values[3].value.as_strings();
  ASSERT_EQ(read->size(), tokens.size());
  EXPECT_EQ(read->back(), "token262143");
}

// Three parts of two tensors each, as `change` leaves them.
using Change = std::function<void(GgufWriter&, u32 part)>;

void write_parts(const TempFolder& dir, const Change& change) {
  for (u32 part = 0; part < 3; ++part) {
    GgufWriter writer;
    const std::vector<u16> numbers = {static_cast<u16>(part), 3};
    const Bytes raw = std::as_bytes(std::span(numbers));
    if (part == 0) writer.set_string("general.architecture", "gemma4");
    writer.set_value("split.no", Value(ValueType::kU16, raw.first(2)));
    writer.set_value("split.count", Value(ValueType::kU16, raw.subspan(2)));
    writer.set_int("split.tensors.count", 6);
    for (u32 i = 0; i < 2; ++i)
      writer.add_tensor(format_text("t{}", part * 2 + i), DType::kF32, std::vector<u64>{8});
    change(writer, part);
    std::vector<std::vector<std::byte>> data;
    for (const auto& tensor : writer.tensors())
      data.emplace_back(tensor.bytes, static_cast<std::byte>(tensor.name[1]));
    const std::vector<Bytes> views(data.begin(), data.end());
    ASSERT_OK(write_gguf(dir / format_text("m-{:05}-of-00003.gguf", part + 1), writer, views));
  }
}

TEST(Gguf, OpensSplitsFromAnyPart) {
  const TempFolder dir;
  write_parts(dir, [](GgufWriter&, u32) {});
  for (int part = 1; part <= 3; ++part) {
    auto gguf = open_gguf(dir / format_text("m-{:05}-of-00003.gguf", part));
    ASSERT_OK(gguf);
    EXPECT_EQ(*gguf->get_string("general.architecture").value(), "gemma4");
    EXPECT_EQ(gguf->name(), dir / "m-00001-of-00003.gguf");
    ASSERT_EQ(gguf->tensors().size(), 6U);
    EXPECT_EQ(gguf->tensor("t5")->part, 2U);
    for (const TensorInfo& tensor : gguf->tensors()) {
      std::vector<std::byte> read(8);
      ASSERT_OK(run_now(gguf->read(tensor, 24, read)));
      EXPECT_EQ(read[7], static_cast<std::byte>(tensor.name[1]));
    }
  }
}

void expect_open_error(const std::string& path, std::string_view end) {
  const auto gguf = open_gguf(path);
  ASSERT_FALSE(gguf);
  EXPECT_TRUE(gguf.error().message.ends_with(end)) << gguf.error().message;
}

TEST(Gguf, RefusesBrokenSplits) {
  const TempFolder dir;
  const std::string first = dir / "m-00001-of-00003.gguf";
  write_parts(dir, [](GgufWriter& w, u32 part) {
    if (part == 1) w.set_uint("split.no", 2);
  });
  expect_open_error(first, "m-00002-of-00003.gguf: The file is part 2 and stands in the place of part 1.");
  write_parts(dir, [](GgufWriter& w, u32 part) {
    if (part == 2) w.set_uint("split.count", 4);
  });
  expect_open_error(first,
                    "m-00003-of-00003.gguf: The file belongs to a model of 4 parts, but 3 were given.");
  write_parts(dir, [](GgufWriter& w, u32) { w.set_string("split.count", "3"); });
  expect_open_error(first, "Key 'split.count' is not a whole number from 0.");
  write_parts(dir, [](GgufWriter& w, u32) { w.set_int("split.tensors.count", 7); });
  expect_open_error(first, "The model should have 7 tensors in all; its files have 6.");
  write_parts(dir, [](GgufWriter& w, u32 part) {
    if (part == 1) w.add_tensor("t0", DType::kF32, std::vector<u64>{1});
  });
  expect_open_error(first, "m-00002-of-00003.gguf: Tensor 't0' is in an earlier part too.");

  ASSERT_EQ(std::rename(first.c_str(), (dir / "alone.gguf").c_str()), 0);
  expect_open_error(dir / "alone.gguf", "The file belongs to a model of 3 parts, but 1 was given.");
  expect_open_error(dir / "m-00002-of-00003.gguf",
                    "m-00001-of-00003.gguf cannot be opened: No such file or directory.");
  EXPECT_TRUE(
      open_gguf(first).error().message.starts_with("The model has 3 parts, and part 1 is not there: "));
  EXPECT_EQ(open_gguf(dir / "absent.gguf").error().kind, ErrorKind::kNotFound);
  EXPECT_FALSE(run_now(Gguf::open({})));
}

TEST(Gguf, SplitPathsFollowTheName) {
  using Paths = std::vector<std::string>;
  EXPECT_EQ(split_paths("a/m-00002-of-00002.gguf").value(),
            (Paths{"a/m-00001-of-00002.gguf", "a/m-00002-of-00002.gguf"}));
  for (const std::string path :
       {"", "m.gguf", "m-0001-of-00002.gguf", "m-00001-of-0000x.gguf", "m-00001_of-00002.gguf",
        "m-00001-of-00002.gguf.bak", "m-00001-of-00002.GGUF"}) {
    EXPECT_EQ(split_paths(path).value(), Paths{path});
  }
  for (const char* path : {"m-00004-of-00003.gguf", "m-00000-of-00003.gguf", "m-00000-of-00000.gguf"}) {
    const auto paths = split_paths(path);
    ASSERT_FALSE(paths);
    EXPECT_TRUE(paths.error().message.ends_with("; parts count from 1.")) << paths.error().message;
  }
}

TEST(Gguf, GettersNameTheKeyOfAnotherKind) {
  GgufWriter writer = small_model();
  writer.set_int("negative", -1);
  writer.set_bool("flag", true);
  std::vector<std::unique_ptr<Source>> parts;
  parts.push_back(memory_source(Raw{writer.header()}.data(writer.data_bytes()).bytes));
  const auto gguf = run_now(Gguf::open(std::move(parts)));
  ASSERT_OK(gguf);
  EXPECT_EQ(gguf->get_uint("absent").value(), std::nullopt);
  EXPECT_EQ(gguf->get_string("absent").value(), std::nullopt);
  EXPECT_EQ(gguf->get_bool("flag").value(), true);
  EXPECT_EQ(gguf->get_float("negative").value(), -1.0);
  EXPECT_EQ(gguf->get_float("eps").value(), f64{1e-6F});
  EXPECT_EQ(gguf->get_uint("negative").error().message,
            "memory: Key 'negative' is not a whole number from 0.");
  EXPECT_EQ(gguf->get_float("flag").error().message, "memory: Key 'flag' is not a number.");
  EXPECT_EQ(gguf->get_bool("eps").error().message, "memory: Key 'eps' is not a boolean.");
  EXPECT_EQ(gguf->get_string("tokens").error().message, "memory: Key 'tokens' is not a string.");
}

}  // namespace
}  // namespace bezel
