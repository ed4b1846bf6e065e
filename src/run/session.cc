#include "run/session.h"

#include <algorithm>

#include "base/check.h"

namespace bezel {

Result<Session> Session::create(Backend& backend, u32 context) {
  return Session(backend, TRY(backend.make_cache(context)));
}

Status Session::check(std::span<const u32> ids) const {
  const u32 vocab = backend_->model().config.vocab;
  for (const u32 id : ids) {
    if (id >= vocab) return invalid("Token {} is outside the vocabulary of {} tokens.", id, vocab);
  }
  if (ids.size() > context() - position()) {
    return invalid("{} tokens do not fit: the context holds {}, of which {} are used.", ids.size(), context(),
                   position());
  }
  return {};
}

Task<Status> Session::step(std::span<const u32> ids, Wanted wanted) {
  begin(ids);
  CO_TRY(co_await backend_->forward(*cache_, ids, position(), wanted, last_));
  tokens_.insert(tokens_.end(), ids.begin(), ids.end());
  co_return Status{};
}

Task<Result<PassProfile>> Session::profile(std::span<const u32> ids, u32 top) {
  CO_TRY(check(ids));
  CHECK(ids.size() <= backend_->batch());
  begin(ids);
  PassProfile found = CO_TRY(co_await backend_->profile(*cache_, ids, position(), {1, top}, last_));
  tokens_.insert(tokens_.end(), ids.begin(), ids.end());
  co_return found;
}

void Session::begin(std::span<const u32> ids) {
  last_ = {};
  // Even a pass that fails may have written some of its keys.
  written_ = std::max(written_, position() + static_cast<u32>(ids.size()));
}

Task<Status> Session::feed(std::span<const u32> ids, const std::function<bool()>& go_on, u32 top) {
  CO_TRY(check(ids));
  while (!ids.empty()) {
    if (go_on && !go_on()) co_return fail(ErrorKind::kCancelled, "The prompt was stopped.");
    const auto now = ids.first(std::min<std::size_t>(ids.size(), backend_->batch()));
    ids = ids.subspan(now.size());
    CO_TRY(co_await step(now, ids.empty() ? Wanted{1, top} : Wanted{}));
  }
  co_return Status{};
}

Task<Status> Session::feed_all(std::span<const u32> ids, std::vector<f32>& logits) {
  CO_TRY(check(ids));
  logits.clear();
  while (!ids.empty()) {
    const auto now = ids.first(std::min<std::size_t>(ids.size(), backend_->outputs()));
    ids = ids.subspan(now.size());
    CO_TRY(co_await step(now, {.rows = static_cast<u32>(now.size())}));
    logits.insert(logits.end(), last_.logits.begin(), last_.logits.end());
  }
  // Keep only the last row, as feed() does.
  const u32 vocab = backend_->model().config.vocab;
  auto& rows = last_.logits;
  if (rows.size() > vocab) rows.erase(rows.begin(), rows.end() - vocab);
  co_return Status{};
}

Task<Status> Session::rewind(u32 count) {
  if (count > position()) {
    co_return invalid("Rewinding to {} tokens is not possible: the session has {}.", count, position());
  }
  if (count == position()) co_return Status{};
  last_ = {};
  if (cache_->holds(count, written_)) {
    tokens_.resize(count);
    co_return Status{};
  }
  const std::vector<u32> kept(tokens_.begin(), tokens_.begin() + count);
  tokens_.clear();
  written_ = 0;
  CO_TRY(co_await feed(kept));
  last_ = {};
  co_return Status{};
}

Task<Status> Session::set_tokens(std::span<const u32> ids, const std::function<bool()>& go_on, u32 top) {
  const auto [mine, theirs] = std::ranges::mismatch(tokens_, ids);
  u32 common = static_cast<u32>(mine - tokens_.begin());
  if (common == ids.size() && common > 0) --common;
  CO_TRY(co_await rewind(common));
  co_return co_await feed(ids.subspan(common), go_on, top);
}

}  // namespace bezel
