// std::format, compiled once. libc++ compiles its own anew for every file that formats: most of what the
// compiler made of the library was copies of it.
#pragma once
#include <format>
#include <string>
#include <string_view>

namespace bezel {

std::string format_text_of(std::string_view format, std::format_args args);

template <class... Args>
std::string format_text(std::format_string<Args...> format, Args&&... args) {
  return format_text_of(format.get(), std::make_format_args(args...));
}

}  // namespace bezel
