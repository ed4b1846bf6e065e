// Just enough of the safetensors format for the goldens: u64 header length, JSON header, raw data.
#pragma once
#include <cstring>

#include "support.h"

namespace bezel {

class Safetensors {
 public:
  explicit Safetensors(const std::string& path) : bytes_(read_bytes(path)) {
    if (bytes_.size() < 8) return;
    u64 length = 0;
    std::memcpy(&length, bytes_.data(), 8);
    const char* text = reinterpret_cast<const char*>(bytes_.data()) + 8;
    header_ = nlohmann::json::parse(text, text + length, nullptr, false);
    data_ = 8 + length;
  }

  bool has(const std::string& key) const { return header_.contains(key); }

  template <class T>
  std::vector<T> get(const std::string& key) const {
    if (!has(key)) {
      ADD_FAILURE() << "no golden '" << key << "'";
      return {};
    }
    const u64 begin = header_[key]["data_offsets"][0].get<u64>();
    const u64 end = header_[key]["data_offsets"][1].get<u64>();
    std::vector<T> out((end - begin) / sizeof(T));
    std::memcpy(out.data(), bytes_.data() + data_ + begin, end - begin);
    return out;
  }

 private:
  std::vector<std::byte> bytes_;
  nlohmann::json header_;
  u64 data_ = 0;
};

}  // namespace bezel
