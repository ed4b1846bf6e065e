#include "run/session.h"

#include <algorithm>

#include "base/check.h"

namespace bezel {

// What one pass reads; `batch` points into the rest.
struct Session::Pass {
  std::vector<u32> ids, last;
  std::vector<f32> soft;
  Batch batch;
};

Result<Session> Session::create(Backend& backend, u32 context) {
  return Session(backend, TRY(backend.make_cache(context)));
}

Status Session::check(const Prompt& prompt) const {
  const TextConfig& config = backend_->model().config;
  for (const u32 id : prompt.ids) {
    if (id >= config.vocab)
      return invalid("Token {} is outside the vocabulary of {} tokens.", id, config.vocab);
  }
  if (prompt.size() > context() - position()) {
    return invalid("{} tokens do not fit: the context holds {}, of which {} are used.", prompt.size(),
                   context(), position());
  }
  u32 end = 0;
  for (const SoftRun& run : prompt.soft) {
    const SoftTokens& soft = *run.tokens;
    CHECK(run.first >= end && run.end() <= prompt.size() && soft.count > 0);
    end = run.end();
    if (soft.rows.size() != std::size_t{soft.count} * config.width) {
      return invalid("{} soft tokens have {} numbers, but the model's width is {}.", soft.count,
                     soft.rows.size(), config.width);
    }
    if (soft.picture && config.pictures_see_ahead() && soft.count > backend_->block()) {
      return invalid(
          "A picture takes {} tokens, but on this device at most {} are computed at once; a smaller "
          "token budget for pictures helps.",
          soft.count, backend_->block());
    }
  }
  return {};
}

// Where a pass that begins at `begin` ends: after `most` tokens, except that a picture whose tokens see each
// other is a pass of its own.
u32 Session::pass_end(const Prompt& prompt, u32 begin, u32 most) const {
  u32 end = std::min(prompt.size(), begin + most);
  if (!backend_->model().config.pictures_see_ahead()) return end;
  for (const SoftRun& run : prompt.soft) {
    if (!run.tokens->picture || run.end() <= begin) continue;
    if (run.first == begin) return run.end();
    end = std::min(end, run.first);
  }
  return end;
}

Session::Pass Session::prepare(const Prompt& prompt, u32 begin, u32 end) {
  const TextConfig& config = backend_->model().config;
  Pass pass;
  pass.ids.assign(prompt.ids.begin() + begin, prompt.ids.begin() + end);
  for (const SoftRun& run : prompt.soft) {
    const u32 from = std::max(begin, run.first), to = std::min(end, run.end());
    if (from >= to) continue;
    const std::size_t width = config.width;
    pass.soft.resize(pass.ids.size() * width);
    std::ranges::fill(std::span(pass.ids).subspan(from - begin, to - from), Batch::kSoft);
    std::ranges::copy(std::span(run.tokens->rows).subspan((from - run.first) * width, (to - from) * width),
                      pass.soft.begin() + static_cast<std::ptrdiff_t>((from - begin) * width));
    if (run.tokens->picture && config.pictures_see_ahead())
      pass.last.assign(pass.ids.size(), position() + end - 1);
  }
  pass.batch = {pass.ids, pass.soft, pass.last};
  last_ = {};
  ahead_ = {};
  // Even a pass that fails may have written some of its keys.
  written_ = std::max(written_, position() + end);
  return pass;
}

Task<Status> Session::step(const Prompt& prompt, u32 begin, u32 end, Wanted wanted) {
  const Pass pass = prepare(prompt, begin, end);
  co_return co_await backend_->forward(*cache_, pass.batch, position() + begin, wanted, last_);
}

Task<Result<PassProfile>> Session::profile(std::span<const u32> ids, u32 top) {
  const Prompt prompt{{ids.begin(), ids.end()}};
  CO_TRY(check(prompt));
  CHECK(ids.size() <= backend_->batch());
  CO_TRY(co_await refill());
  const Pass pass = prepare(prompt, 0, prompt.size());
  PassProfile found = CO_TRY(co_await backend_->profile(*cache_, pass.batch, position(), {1, top}, last_));
  held_.append(prompt);
  co_return found;
}

Task<Status> Session::feed(Prompt prompt, const std::function<bool()>& go_on, u32 top) {
  CO_TRY(check(prompt));
  CO_TRY(co_await refill());
  Status status;
  u32 begin = 0;
  while (status && begin < prompt.size()) {
    const u32 end = pass_end(prompt, begin, backend_->batch());
    if (go_on && !go_on()) {
      status = fail(ErrorKind::kCancelled, "The prompt was stopped.");
    } else {
      status = co_await step(prompt, begin, end, end == prompt.size() ? Wanted{1, top} : Wanted{});
    }
    if (status) begin = end;
  }
  keep(prompt, begin);
  co_return status;
}

Task<Status> Session::feed(std::span<const u32> ids, const std::function<bool()>& go_on, u32 top) {
  return feed(Prompt{{ids.begin(), ids.end()}}, go_on, top);
}

Task<Status> Session::decode(u32 token, u32 top, const Sampler& sampler, bool more) {
  if (top == 0 || !backend_->decodes_ahead()) co_return co_await feed(std::span(&token, 1), {}, top);
  CO_TRY(check({{token}}));
  Ahead now = std::exchange(ahead_, {}), next;
  last_ = {};
  if (now.token != token || now.top != top) now.step.reset();
  std::optional<Chosen> chosen;
  while (!chosen) {  // once more if it was in vain; what was begun ahead may have taken a slot that it needs
    if (now.step == nullptr) {
      CO_TRY(co_await refill());
      written_ = std::max(written_, position() + 1);
      now.step = CO_TRY(co_await backend_->begin(
          *cache_, {.token = token, .position = position(), .top = top, .draw = sampler.foresee(0)}));
    }
    next = {.top = top};
    if (more && position() + 1 < context()) {
      written_ = std::max(written_, position() + 2);
      next.step = CO_TRY(co_await backend_->begin(
          *cache_,
          {.after = now.step.get(), .position = position() + 1, .top = top, .draw = sampler.foresee(1)}));
    }
    chosen = CO_TRY(co_await std::exchange(now.step, nullptr)->finish());
  }
  held_.append({{token}});
  last_.candidates = std::move(chosen->candidates);
  next.token = chosen->token;
  ahead_ = std::move(next);
  co_return Status{};
}

Task<Status> Session::feed_all(Prompt prompt, std::vector<f32>& logits) {
  CO_TRY(check(prompt));
  CO_TRY(co_await refill());
  logits.clear();
  Status status;
  u32 begin = 0;
  while (status && begin < prompt.size()) {
    const u32 end = pass_end(prompt, begin, backend_->outputs());
    if (end - begin > backend_->outputs()) {
      status =
          fail(ErrorKind::kMemory,
               "A picture takes {} tokens, but on this device the logits of at most {} are computed at once.",
               end - begin, backend_->outputs());
    } else {
      status = co_await step(prompt, begin, end, {.rows = end - begin});
    }
    if (!status) break;
    logits.insert(logits.end(), last_.logits.begin(), last_.logits.end());
    begin = end;
  }
  keep(prompt, begin);
  // Keep only the last row, as feed() does.
  const u32 vocab = backend_->model().config.vocab;
  auto& rows = last_.logits;
  if (rows.size() > vocab) rows.erase(rows.begin(), rows.end() - vocab);
  co_return status;
}

void Session::keep(Prompt& prompt, u32 count) {
  prompt.truncate(count);
  held_.append(prompt);
}

Task<Status> Session::refill() {
  if (cache_->holds(position(), written_)) co_return Status{};
  Prompt kept = std::exchange(held_, {});
  written_ = 0;
  CO_TRY(co_await feed(std::move(kept)));
  last_ = {};
  co_return Status{};
}

Task<Status> Session::rewind(u32 count) {
  if (count > position()) {
    co_return invalid("Rewinding to {} tokens is not possible: the session has {}.", count, position());
  }
  if (count == position()) co_return Status{};
  last_ = {};
  ahead_ = {};
  held_.truncate(count);
  co_return co_await refill();
}

Task<Status> Session::set_prompt(Prompt prompt, const std::function<bool()>& go_on, u32 top) {
  u32 common = common_prefix(held_, prompt);
  if (common == prompt.size() && common > 0) {
    Prompt shorter = prompt;
    shorter.truncate(common - 1);
    common = shorter.size();
  }
  CO_TRY(co_await rewind(common));
  co_return co_await feed(rest_of(prompt, common), go_on, top);
}

}  // namespace bezel
