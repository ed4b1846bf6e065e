// Reads a request's JSON: what is missing, of the wrong type or out of range is an error that names it.
#pragma once
#include <concepts>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/types.h"

namespace bezel {

class Arguments {
 public:
  explicit Arguments(const nlohmann::json& json) : json_(json) {}

  const nlohmann::json* find(const char* key) const {
    if (!json_.is_object()) return nullptr;
    const auto found = json_.find(key);
    return found == json_.end() || found->is_null() ? nullptr : &*found;
  }

  template <class T>
  Result<std::optional<T>> optional(const char* key) const {
    const nlohmann::json* value = find(key);
    if (value == nullptr) return std::nullopt;
    return TRY(read<T>(key, *value));
  }
  template <class T>
  Result<T> get(const char* key) const {
    const nlohmann::json* value = find(key);
    if (value == nullptr) return invalid("'{}' is missing.", key);
    return read<T>(key, *value);
  }
  template <class T>
  Result<T> get(const char* key, T otherwise) const {
    return TRY(optional<T>(key)).value_or(std::move(otherwise));
  }
  // Leaves `out` as it is when there is none.
  template <class T>
  Status into(const char* key, T& out) const {
    if (auto value = TRY(optional<T>(key))) out = std::move(*value);
    return {};
  }
  template <class T>
  Result<std::vector<T>> list(const char* key) const {
    const nlohmann::json* value = find(key);
    std::vector<T> items;
    if (value == nullptr) return items;
    if (!value->is_array()) return invalid("'{}' must be a list.", key);
    for (const auto& item : *value) items.push_back(TRY(read<T>(key, item)));
    return items;
  }

 private:
  template <class T>
  static Result<T> read(const char* key, const nlohmann::json& value) {
    if constexpr (std::same_as<T, bool>) {
      if (!value.is_boolean()) return invalid("'{}' must be true or false.", key);
      return value.get<bool>();
    } else if constexpr (std::same_as<T, std::string>) {
      if (!value.is_string()) return invalid("'{}' must be a string.", key);
      return value.get<std::string>();
    } else if constexpr (std::floating_point<T>) {
      if (!value.is_number()) return invalid("'{}' must be a number.", key);
      return static_cast<T>(value.get<f64>());
    } else {
      // JavaScript has one kind of number: 3.0 is an integer too.
      const f64 most = static_cast<f64>(std::numeric_limits<T>::max());
      const f64 number = value.is_number() ? value.get<f64>() : -1;
      if (!(number >= 0 && number < most && number == static_cast<f64>(static_cast<u64>(number)))) {
        return invalid("'{}' must be a whole number from 0 to {}.", key, std::numeric_limits<T>::max() - 1);
      }
      return static_cast<T>(number);
    }
  }

  const nlohmann::json& json_;
};

}  // namespace bezel
