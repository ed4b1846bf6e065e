#include "run/session_pool.h"

#include <algorithm>

namespace bezel {

// An existing session, or the end where a new one is better.
std::list<Session>::iterator SessionPool::choose(const Prompt& prompt) {
  auto best = sessions_.end();
  u32 kept = 0;
  for (auto session = sessions_.begin(); session != sessions_.end(); ++session) {
    const u32 common = common_prefix(session->held(), prompt);
    if (common > kept) {
      kept = common;
      best = session;
    }
  }
  // Every chat begins alike. Only what is kept can justify what is lost.
  if (best != sessions_.end() && kept > best->position() - kept) return best;
  const auto empty = std::ranges::find_if(sessions_, [](const Session& s) { return s.tokens().empty(); });
  if (empty != sessions_.end() || sessions_.size() < limit_) return empty;
  return kept * 2 > prompt.size() ? best : std::prev(sessions_.end());
}

Task<Result<Session>> SessionPool::create() {
  Session session = CO_TRY(Session::create(*backend_, context_));
  if (device_ != nullptr) CO_TRY(co_await device_->settle());  // is there memory for it?
  co_return session;
}

Task<Result<Session*>> SessionPool::take(const Prompt& prompt) {
  auto session = choose(prompt);
  if (session == sessions_.end()) {
    auto fresh = co_await create();
    if (fresh) {
      session = sessions_.insert(sessions_.end(), std::move(*fresh));
    } else if (sessions_.empty() || fresh.error().kind != ErrorKind::kMemory) {
      co_return std::unexpected(std::move(fresh).error());
    } else {
      session = std::prev(sessions_.end());
    }
  }
  sessions_.splice(sessions_.begin(), sessions_, session);
  co_return &sessions_.front();
}

}  // namespace bezel
