// What a Service holds by number, for the files that implement its methods.
#pragma once
#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include "api/arguments.h"
#include "api/service.h"
#include "base/async_lock.h"
#include "run/session_pool.h"

namespace bezel {

template <class T>
Result<std::shared_ptr<T>> find(const std::map<u32, std::shared_ptr<T>>& all, const nlohmann::json& args,
                                const char* kind) {
  const u32 id = TRY(Arguments(args).get<u32>(kind));
  const auto found = all.find(id);
  if (found == all.end()) return fail(ErrorKind::kNotFound, "There is no {} {}: it was closed.", kind, id);
  return found->second;
}

struct Service::LoadedModel {
  std::shared_ptr<Device> device;  // none: the CPU
  std::unique_ptr<Engine> engine;
  std::optional<SessionPool> pool;  // for completions that name no session
  AsyncLock lock;                   // one forward pass at a time
  std::map<u32, Medium> media;      // what was seen and heard, for messages to name

  // Of a part {"type": ..., "media": number}, or {"type": "video", "frames": [{"media": number, "seconds":
  // ...}]}.
  Task<Result<Medium>> find_media(const nlohmann::json& part);

  u32 usual_context() const { return std::min(engine->config().context, 4096u); }

  SessionPool& pool_of(u32 context) {
    constexpr u32 kSessions = 2;  // a chat, and whatever asks a question in between
    if (!pool || pool->context() != context)
      pool.emplace(engine->backend(), device.get(), context, kSessions);
    return *pool;
  }
};

struct Service::OpenSession {
  std::shared_ptr<LoadedModel> model;
  Session session;
};

}  // namespace bezel
