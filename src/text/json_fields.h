// Reading fields of a request: a wrong type is an error that names the field by its path, never an abort.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/format_text.h"
#include "base/result.h"

namespace bezel {

inline std::unexpected<Error> wrong_type(std::string_view where, std::string_view expected,
                                         const nlohmann::json& value) {
  return invalid("{} must be {}, not {}.", where, expected, value.type_name());
}

// The member, or nullptr where it is missing or null.
inline const nlohmann::json* member(const nlohmann::json& object, std::string_view key) {
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

inline Result<std::string_view> as_string(const nlohmann::json& value, std::string_view where) {
  if (!value.is_string()) return wrong_type(where, "a string", value);
  return std::string_view(*value.get_ptr<const std::string*>());
}

// The string, or "" where it is missing or null.
inline Result<std::string_view> string_member(const nlohmann::json& object, std::string_view key,
                                              std::string_view where) {
  const nlohmann::json* value = member(object, key);
  if (value == nullptr) return std::string_view();
  return as_string(*value, format_text("{}.{}", where, key));
}

// The list, or nullptr where it is missing, null or empty.
inline Result<const nlohmann::json*> list_member(const nlohmann::json& object, std::string_view key,
                                                 std::string_view where) {
  const nlohmann::json* value = member(object, key);
  if (value == nullptr) return nullptr;
  if (!value->is_array()) return wrong_type(format_text("{}.{}", where, key), "a list", *value);
  return value->empty() ? nullptr : value;
}

// The object, or nullptr where it is missing or null.
inline Result<const nlohmann::json*> object_member(const nlohmann::json& object, std::string_view key,
                                                   std::string_view where) {
  const nlohmann::json* value = member(object, key);
  if (value == nullptr) return nullptr;
  if (!value->is_object()) return wrong_type(format_text("{}.{}", where, key), "an object", *value);
  return value;
}

}  // namespace bezel
