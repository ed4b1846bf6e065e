// How messages show text from outside.
#pragma once
#include <string>
#include <string_view>

namespace bezel {

// In quotes, cut if long, anything but printable ASCII as \xNN: it cannot rewrite a terminal.
std::string quote(std::string_view text);

}  // namespace bezel
