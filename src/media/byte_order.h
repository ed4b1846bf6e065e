// Numbers out of files, in either order. The caller has checked that they lie within the bytes.
#pragma once
#include <cstring>
#include <string_view>

#include "base/types.h"

namespace bezel {

inline u32 byte_at(Bytes bytes, std::size_t at) { return std::to_integer<u32>(bytes[at]); }

inline u32 little16(Bytes bytes, std::size_t at) { return byte_at(bytes, at) | byte_at(bytes, at + 1) << 8; }
inline u32 little32(Bytes bytes, std::size_t at) {
  return little16(bytes, at) | little16(bytes, at + 2) << 16;
}
inline u32 big16(Bytes bytes, std::size_t at) { return byte_at(bytes, at) << 8 | byte_at(bytes, at + 1); }
inline u32 big32(Bytes bytes, std::size_t at) { return big16(bytes, at) << 16 | big16(bytes, at + 2); }

// Whether `text` stands at `at`; false where the bytes end before.
inline bool has_text(Bytes bytes, std::size_t at, std::string_view text) {
  return at <= bytes.size() && bytes.size() - at >= text.size() &&
         std::memcmp(bytes.data() + at, text.data(), text.size()) == 0;
}

}  // namespace bezel
