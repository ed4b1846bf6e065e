// A call into the host that may end later. The host gets the object's address and, when it is done, gives it
// back to bezel_resume (c_api.cc), which continues the coroutine that waits.
#pragma once
#include <coroutine>
#include <string>
#include <utility>

#include "base/result.h"
#include "base/types.h"

#define HOST_IMPORT(module, name) __attribute__((import_module(module), import_name(name)))

namespace bezel {

// Copies the text that goes with the host's last answer, at most `capacity` bytes; gives its whole length.
HOST_IMPORT("host", "message") u32 host_message(char* out, u32 capacity);

inline std::string take_host_message() {
  std::string text(host_message(nullptr, 0), '\0');
  host_message(text.data(), static_cast<u32>(text.size()));
  return text;
}

class HostCall;

// What the host answers instead of a number, when it will answer later.
inline constexpr i32 kLater = -0x7fffffff;

// co_await host_call([&](HostCall* call) { return some_import(..., call); }) gives the host's number.
// The awaiting coroutine must live until the answer comes.
class HostCall {
 public:
  void resume(i32 answer) {
    answer_ = answer;
    waiter_.resume();
  }

 protected:
  i32 answer_ = 0;
  std::coroutine_handle<> waiter_;
};

template <class Start>
class StartedHostCall final : public HostCall {
 public:
  explicit StartedHostCall(Start start) : start_(std::move(start)) {}
  bool await_ready() const noexcept { return false; }
  bool await_suspend(std::coroutine_handle<> waiter) {
    waiter_ = waiter;
    const i32 answer = start_(static_cast<HostCall*>(this));
    if (answer == kLater) return true;
    answer_ = answer;
    return false;
  }
  i32 await_resume() const noexcept { return answer_; }

 private:
  Start start_;
};

template <class Start>
StartedHostCall<Start> host_call(Start start) {
  return StartedHostCall<Start>(std::move(start));
}

// The host's answer as a Status: negative numbers are errors, -1 - kind, with a message.
inline Status host_status(i32 answer) {
  if (answer >= 0) return {};
  const i32 kind = -1 - answer;
  const bool known = kind <= static_cast<i32>(ErrorKind::kDeviceLost);
  return std::unexpected(Error{known ? static_cast<ErrorKind>(kind) : ErrorKind::kIo, take_host_message()});
}

}  // namespace bezel
