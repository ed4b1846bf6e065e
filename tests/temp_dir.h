// A folder for the files of one test, removed with everything in it.
#pragma once
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <system_error>

namespace bezel {

class TempDir {
 public:
  TempDir() {
    // The clock keeps apart the runs that go on at the same time.
    const auto ticks = std::chrono::steady_clock::now().time_since_epoch().count();
    path_ = testing::TempDir() + "/bezel-test-" + std::to_string(ticks);
    std::error_code error;
    EXPECT_TRUE(std::filesystem::create_directory(path_, error)) << path_;
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  bool holds(const std::string& name) const {
    std::error_code ignored;
    return std::filesystem::exists(path_ + "/" + name, ignored);
  }

 private:
  std::string path_;
};

}  // namespace bezel
