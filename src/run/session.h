// One conversation's state: the tokens so far and their keys and values.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "io/source.h"
#include "run/backend.h"
#include "run/prompt.h"

namespace bezel {

using ByteSink = std::function<Status(Bytes)>;

class Session {
 public:
  static Result<Session> create(Backend& backend, u32 context);

  u32 context() const { return cache_->context(); }
  u64 cache_bytes() const { return cache_->bytes(); }
  const std::vector<u32>& tokens() const { return held_.ids; }  // placeholders where soft tokens are
  const Prompt& held() const { return held_; }
  u32 position() const { return held_.size(); }

  // Appends tokens in batches. logits() then belong to the last one, or with `top` > 0 candidates(), at least
  // so many. Asks `go_on` between batches; false stops with kCancelled, and the tokens of finished batches
  // stay.
  Task<Status> feed(Prompt prompt, const std::function<bool()>& go_on = {}, u32 top = 0);
  Task<Status> feed(std::span<const u32> ids, const std::function<bool()>& go_on = {}, u32 top = 0);

  // Like feed() of one token with `top`, where the next one will come from `sampler`. With `more`, a device
  // that can begins with that one before this one's candidates are read: with the token that it chooses
  // itself. If the sampler's is another after all, what was begun is forgotten.
  Task<Status> decode(u32 token, u32 top, const Sampler& sampler, bool more);

  // The logits of every token, row by row; for evaluation.
  Task<Status> feed_all(Prompt prompt, std::vector<f32>& logits);

  // Like feed() of at most one batch, and what the pass consisted of.
  Task<Result<PassProfile>> profile(std::span<const u32> ids, u32 top);

  // Forgets all but the first `count` tokens, and where that is within soft tokens, these as a whole. Where
  // the rings no longer hold what the next token would see, the prefix is fed again. logits() and
  // candidates() are empty until the next feed().
  Task<Status> rewind(u32 count);

  // Makes the session's tokens equal to the prompt, keeping the longest common prefix. At least the last
  // token is fed, so that logits() or candidates() are there.
  Task<Status> set_prompt(Prompt prompt, const std::function<bool()>& go_on = {}, u32 top = 0);

  std::span<const f32> logits() const { return last_.logits; }
  const Candidates& candidates() const { return last_.candidates; }

  // Writes the tokens with their keys and values, a few MiB at a time; the form is described in
  // session_file.cc.
  Task<Status> save(const ByteSink& sink) const;
  // Takes over what save() wrote, in a session of the same model and the same kind of cache whose context is
  // large enough. logits() are empty until the next feed(). A file that does not belong here leaves the
  // session as it was; one that turns out to be damaged leaves it empty.
  Task<Status> restore(Source& source);

 private:
  Session(Backend& backend, std::unique_ptr<KvCache> cache) : backend_(&backend), cache_(std::move(cache)) {}
  struct Pass;
  Status check(const Prompt& prompt) const;
  u32 pass_end(const Prompt& prompt, u32 begin, u32 most) const;
  Pass prepare(const Prompt& prompt, u32 begin, u32 end);
  // Tokens [begin, end) of a prompt that follows what is held.
  Task<Status> step(const Prompt& prompt, u32 begin, u32 end, Wanted wanted);
  // Of a prompt whose first `count` tokens were fed, takes over those that stand for themselves: soft ones
  // count as a whole.
  void keep(Prompt& prompt, u32 count);
  // Feeds again what is held, where the rings have lost what the next token would see.
  Task<Status> refill();

  // A step beyond what is held, of a token that the session may be given next.
  struct Ahead {
    std::unique_ptr<DecodeStep> step = {};
    u32 token = 0, top = 0;
  };

  Backend* backend_;
  std::unique_ptr<KvCache> cache_;
  Prompt held_;
  Outputs last_;
  Ahead ahead_;      // none: its step is null
  u32 written_ = 0;  // one past the highest position that the cache has seen
};

}  // namespace bezel
