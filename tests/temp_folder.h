// For tests: a folder that is removed with everything in it. POSIX calls, because the C++ library of the
// WebAssembly build has no file system.
#pragma once
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "io/files.h"

namespace bezel {

class TempFolder {
 public:
  TempFolder() {
    const char* parent = std::getenv("TMPDIR");
    const std::string base = std::string(parent != nullptr ? parent : "/tmp") + "/bezel-test-";
    int number = 0;
    do path_ = base + std::to_string(++number);
    while (mkdir(path_.c_str(), 0700) != 0 && number < 10000);
    EXPECT_TRUE(is_folder(path_)) << "No folder can be made in " << base;
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() { remove_all(path_); }

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  bool holds(const std::string& name) const {
    return std::ranges::contains(list_folder(path_).value_or(std::vector<std::string>()), name);
  }
  void make_folder(const std::string& name) const {
    EXPECT_EQ(mkdir((*this / name).c_str(), 0700), 0) << *this / name;
  }

  // Makes the folders on the way.
  std::string write(const std::string& name, std::string_view text) const {
    std::string path = path_ + "/" + name;
    for (std::size_t slash = path_.size(); slash != std::string::npos; slash = path.find('/', slash + 1)) {
      mkdir(path.substr(0, slash).c_str(), 0700);
    }
    const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    EXPECT_GE(fd, 0) << path;
    EXPECT_EQ(::write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size())) << path;
    close(fd);
    return path;
  }

 private:
  static void remove_all(const std::string& path) {
    if (is_folder(path)) {
      for (const std::string& name : list_folder(path).value_or(std::vector<std::string>())) {
        remove_all(path + "/" + name);
      }
      rmdir(path.c_str());
    } else {
      unlink(path.c_str());
    }
  }

  std::string path_;
};

}  // namespace bezel
