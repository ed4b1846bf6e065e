// Errors that come from outside (files, users, devices) are values; our own mistakes stop at CHECK (check.h).
#pragma once
#include <expected>
#include <format>
#include <string>
#include <utility>

#include "base/format_text.h"

namespace bezel {

// What a caller can do about an error. The message says the rest, in full sentences with the value and the
// limit.
enum class ErrorKind {
  kInvalid,      // malformed input: a broken file, a bad argument
  kUnsupported,  // well-formed, but not something this engine does
  kNotFound,     // no such file, model or tensor
  kIo,           // the system refused a read or a write
  kMemory,       // more memory than there is
  kCancelled,    // the caller asked to stop
  kDeviceLost,   // the GPU went away; opening it again may help
};

struct Error {
  ErrorKind kind = ErrorKind::kInvalid;
  std::string message;
};

template <class T>
using Result = std::expected<T, Error>;
using Status = Result<void>;

template <class... Args>
std::unexpected<Error> fail(ErrorKind kind, std::format_string<Args...> format, Args&&... args) {
  return std::unexpected(Error{kind, format_text(format, std::forward<Args>(args)...)});
}

template <class... Args>
std::unexpected<Error> invalid(std::format_string<Args...> format, Args&&... args) {
  return fail(ErrorKind::kInvalid, format, std::forward<Args>(args)...);
}

namespace detail {
template <class T>
T take(Result<T>& result) {
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}
}  // namespace detail

}  // namespace bezel

// `auto v = TRY(f());` gives the value or returns the error from the enclosing function.
// In a coroutine: `auto v = CO_TRY(co_await f());`.
#define TRY(expression)                                                       \
  ({                                                                          \
    auto try_result_ = (expression);                                          \
    if (!try_result_) return std::unexpected(std::move(try_result_).error()); \
    ::bezel::detail::take(try_result_);                                       \
  })
#define CO_TRY(expression)                                                       \
  ({                                                                             \
    auto try_result_ = (expression);                                             \
    if (!try_result_) co_return std::unexpected(std::move(try_result_).error()); \
    ::bezel::detail::take(try_result_);                                          \
  })
