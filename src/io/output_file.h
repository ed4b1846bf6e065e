// A sequential output file that is complete or absent.
#pragma once
#include <string>

#include "base/result.h"
#include "base/types.h"

namespace bezel {

// Writes go to "<path>.partial"; finish() renames it, so that nobody ever sees half a file under its name.
class OutputFile {
 public:
  static Result<OutputFile> create(const std::string& path);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();  // removes the partial file unless finished

  Status write(Bytes bytes);
  Status finish();

 private:
  OutputFile() = default;
  std::string path_;
  int fd_ = -1;
};

}  // namespace bezel
