#include "io/output_file.h"

#include <gtest/gtest.h>

#include <utility>

#include "support.h"
#include "temp_dir.h"

namespace bezel {
namespace {

std::string_view text(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
Bytes bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

TEST(OutputFile, AppearsWhenFinished) {
  const TempDir dir;
  auto file = OutputFile::create(dir / "a");
  ASSERT_OK(file);
  OutputFile moved = std::move(*file);
  ASSERT_OK(moved.write(bytes("one ")));
  ASSERT_OK(moved.write({}));
  ASSERT_OK(moved.write(bytes("two")));
  EXPECT_FALSE(dir.holds("a"));
  ASSERT_OK(moved.finish());
  EXPECT_EQ(text(read_bytes(dir / "a")), "one two");
  EXPECT_FALSE(dir.holds("a.partial"));
}

TEST(OutputFile, LeavesNothingWhenAbandoned) {
  const TempDir dir;
  {
    auto file = OutputFile::create(dir / "a");
    ASSERT_OK(file);
    ASSERT_OK(file->write(bytes("half")));
    EXPECT_TRUE(dir.holds("a.partial"));
  }
  EXPECT_FALSE(dir.holds("a"));
  EXPECT_FALSE(dir.holds("a.partial"));
}

TEST(OutputFile, ReplacesTheOldFileOnlyAtTheEnd) {
  const TempDir dir;
  for (const std::string_view content : {"the old content", "new"}) {
    auto file = OutputFile::create(dir / "a");
    ASSERT_OK(file);
    ASSERT_OK(file->write(bytes(content)));
    if (content == "new") EXPECT_EQ(text(read_bytes(dir / "a")), "the old content");
    ASSERT_OK(file->finish());
  }
  EXPECT_EQ(text(read_bytes(dir / "a")), "new");
}

TEST(OutputFile, ReportsWhatTheSystemRefuses) {
  const TempDir dir;
  const auto file = OutputFile::create(dir / "missing/a");
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().kind, ErrorKind::kIo);
  EXPECT_TRUE(
      file.error().message.ends_with("missing/a.partial cannot be created: No such file or directory."))
      << file.error().message;

  dir.make_folder("folder");
  auto onto_folder = OutputFile::create(dir / "folder");
  ASSERT_OK(onto_folder);
  const Status finished = onto_folder->finish();
  ASSERT_FALSE(finished);
  EXPECT_NE(finished.error().message.find("folder cannot be completed: "), std::string::npos);
  EXPECT_FALSE(dir.holds("folder.partial"));
}

}  // namespace
}  // namespace bezel
