#include "base/format_text.h"

namespace bezel {

std::string format_text_of(std::string_view format, std::format_args args) {
  return std::vformat(format, args);
}

}  // namespace bezel
