// Lets coroutines take turns, first come, first served. No threads: a turn is given up only at a co_await.
#pragma once
#include <coroutine>
#include <deque>
#include <utility>

namespace bezel {

class AsyncLock {
 public:
  // Held until destroyed. The lock must outlive it.
  class Turn {
   public:
    explicit Turn(AsyncLock& lock) : lock_(&lock) {}
    Turn(Turn&& other) noexcept : lock_(std::exchange(other.lock_, nullptr)) {}
    Turn& operator=(Turn&&) = delete;
    ~Turn() {
      if (lock_ != nullptr) lock_->pass_on();
    }

   private:
    AsyncLock* lock_;
  };

  // co_await lock.turn()
  auto turn() {
    struct Wait {
      AsyncLock& lock;
      bool await_ready() const { return !std::exchange(lock.held_, true); }
      void await_suspend(std::coroutine_handle<> waiter) const { lock.waiting_.push_back(waiter); }
      Turn await_resume() const { return Turn(lock); }
    };
    return Wait{*this};
  }

 private:
  void pass_on() {
    if (waiting_.empty()) {
      held_ = false;
      return;
    }
    const auto next = waiting_.front();
    waiting_.pop_front();
    next.resume();
  }

  bool held_ = false;
  std::deque<std::coroutine_handle<>> waiting_;
};

}  // namespace bezel
