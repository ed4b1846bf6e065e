// A folder for the files of one test, removed with what is in it. POSIX calls, because the C++ library of the
// WebAssembly build has no file system.
#pragma once
#include <dirent.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

namespace bezel {

class TempDir {
 public:
  TempDir() {
    // The clock keeps apart the runs that go on at the same time.
    const auto ticks = std::chrono::steady_clock::now().time_since_epoch().count();
    path_ = testing::TempDir() + "/bezel-test-" + std::to_string(ticks);
    make_folder("");
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir() {
    for (const std::string& name : names()) std::remove((*this / name).c_str());
    rmdir(path_.c_str());
  }

  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  void make_folder(const std::string& name) const {
    EXPECT_EQ(mkdir((*this / name).c_str(), 0755), 0) << *this / name;
  }
  bool holds(const std::string& name) const { return std::ranges::contains(names(), name); }

 private:
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    DIR* folder = opendir(path_.c_str());
    while (const dirent* entry = folder == nullptr ? nullptr : readdir(folder)) {
      const std::string name = entry->d_name;
      if (name != "." && name != "..") names.push_back(name);
    }
    if (folder != nullptr) closedir(folder);
    return names;
  }
  std::string path_;
};

}  // namespace bezel
