// A lazy coroutine. Work that waits (on a Source, on a device) returns Task<T>; natively it completes at
// once, on the web it resumes when the host calls back. No threads, no JSPI, no Asyncify.
#pragma once
#include <coroutine>
#include <cstdlib>
#include <optional>
#include <utility>

#include "base/check.h"

namespace bezel {

template <class T>
class [[nodiscard]] Task {
 public:
  struct promise_type {
    std::optional<T> value;
    std::coroutine_handle<> continuation;

    Task get_return_object() { return Task{std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_always initial_suspend() noexcept { return {}; }
    auto final_suspend() noexcept {
      struct Final {
        bool await_ready() noexcept { return false; }
        std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> handle) noexcept {
          auto next = handle.promise().continuation;
          return next ? next : std::coroutine_handle<>(std::noop_coroutine());
        }
        void await_resume() noexcept {}
      };
      return Final{};
    }
    template <class U>
    void return_value(U&& v) {
      value.emplace(std::forward<U>(v));
    }
    void unhandled_exception() { std::abort(); }
  };

  explicit Task(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
  Task& operator=(Task&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Task() {
    if (handle_) handle_.destroy();
  }

  bool await_ready() const noexcept { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> waiter) noexcept {
    handle_.promise().continuation = waiter;
    return handle_;
  }
  T await_resume() { return std::move(*handle_.promise().value); }

  void start() { handle_.resume(); }
  bool done() const { return handle_.done(); }
  T take() { return std::move(*handle_.promise().value); }

 private:
  std::coroutine_handle<promise_type> handle_;
};

// Runs a task that cannot suspend: all of its sources answer at once, as files and memory do.
template <class T>
T run_now(Task<T> task) {
  task.start();
  CHECK(task.done());
  return task.take();
}

}  // namespace bezel
