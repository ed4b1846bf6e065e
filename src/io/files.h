// Small questions to the file system, by POSIX calls alone: they work natively and in WebAssembly.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/quote.h"
#include "base/result.h"
#include "base/types.h"

namespace bezel {

bool is_file(const std::string& path);
bool is_folder(const std::string& path);
Result<u64> file_size(const std::string& path);  // an error for anything that is not a regular file

// Sorted names without "." and "..".
Result<std::vector<std::string>> list_folder(const std::string& path);

// A whole file of at most `max_bytes`.
Result<std::string> read_text(const std::string& path, u64 max_bytes);

}  // namespace bezel
