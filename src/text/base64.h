// Base64 as data: URLs and requests carry it.
#pragma once
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/types.h"

namespace bezel {

// The alphabet of RFC 4648, or its URL-safe form; padding is optional, white space is skipped.
Result<std::vector<std::byte>> decode_base64(std::string_view text);

}  // namespace bezel
