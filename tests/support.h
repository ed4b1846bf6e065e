// What tests share: where their data lies and how to read it. Tests run from the repository's root.
#pragma once
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/types.h"
#include "io/source.h"

namespace bezel {

inline std::string data_path(const std::string& name) { return "tests/data/" + name; }

inline std::vector<std::byte> read_bytes(const std::string& path) {
  auto source = open_file(path);
  if (!source) {
    ADD_FAILURE() << source.error().message;
    return {};
  }
  std::vector<std::byte> bytes(static_cast<std::size_t>((*source)->size()));
  const Status status = run_now((*source)->read(0, bytes));
  EXPECT_TRUE(status) << path;
  return bytes;
}

inline nlohmann::json read_json(const std::string& path) {
  const auto bytes = read_bytes(path);
  const char* text = reinterpret_cast<const char*>(bytes.data());
  auto json = nlohmann::json::parse(text, text + bytes.size(), nullptr, false);
  EXPECT_FALSE(json.is_discarded()) << path << " is not JSON";
  return json;
}

}  // namespace bezel

// The value of a Result, or a failed test that shows the error's message.
#define ASSERT_OK(result) ASSERT_TRUE((result).has_value()) << (result).error().message
