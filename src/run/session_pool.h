// A few sessions on one model, so that a conversation that goes on finds its keys and values again.
#pragma once
#include <list>

#include "run/session.h"

namespace bezel {

class SessionPool {
 public:
  // At most `limit` sessions (at least one) of `context` tokens each. The backend and its device, if any,
  // must outlive the pool.
  SessionPool(Backend& backend, Device* device, u32 context, u32 limit)
      : backend_(&backend), device_(device), context_(context), limit_(limit < 1 ? 1 : limit) {}

  // The session to answer `prompt` in: the one that keeps the most of it, unless that would throw away more
  // of another conversation; then a new one, or the one unused for longest. Where there is no memory for a
  // new one, an old one does. It belongs to the pool and is good until the next call.
  Task<Result<Session*>> take(const Prompt& prompt);

  // The session that was taken last, or null.
  const Session* latest() const { return sessions_.empty() ? nullptr : &sessions_.front(); }

  u32 context() const { return context_; }
  u32 size() const { return static_cast<u32>(sessions_.size()); }

 private:
  Task<Result<Session>> create();
  std::list<Session>::iterator choose(const Prompt& prompt);

  Backend* backend_;
  Device* device_;
  u32 context_;
  u32 limit_;
  std::list<Session> sessions_;  // the latest used first
};

}  // namespace bezel
