// A model that a server answers with: loaded when it is first needed, and used by one request at a time,
// first come, first served. Native only.
#pragma once
#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "api/openai.h"
#include "run/session_pool.h"

namespace bezel {

// The device, if any, lives as long as the engine.
struct HostedEngine {
  std::unique_ptr<Device> device;
  std::unique_ptr<Engine> engine;
  std::string system;  // the instruction for chats without one; may be empty
};

class ModelHost {
 public:
  // Tells how far it is; false stops.
  using Progress = std::function<bool(u64 done, u64 total)>;
  using Load = std::function<Result<HostedEngine>(const Progress& progress)>;

  // Keeps `sessions` conversations of up to `context` tokens each (0: what the model allows, at most 4096).
  ModelHost(std::string name, Load load, u32 context, u32 sessions = 4)
      : name_(std::move(name)), load_(std::move(load)), context_(context), sessions_(sessions) {}

  const std::string& name() const { return name_; }
  nlohmann::json status() const;

  // Loads the model if it is not there yet.
  Status prepare(const std::function<bool()>& go_on);
  // Answers one request; see complete_chat(). `go_on` is also asked while it waits for others.
  Result<nlohmann::json> complete(const nlohmann::json& request, ChatCallbacks callbacks);

 private:
  enum class State { kWaiting, kLoading, kReady, kFailed };
  class Turn;
  Result<std::unique_ptr<Turn>> wait_for_turn(const std::function<bool()>& go_on, bool answers);
  Status load_in_turn(const std::function<bool()>& go_on);
  void unload();

  std::string name_;
  Load load_;
  u32 context_, sessions_;

  mutable std::mutex mutex_;  // over what follows
  std::condition_variable changed_;
  std::deque<u64> queue_;  // the first one's turn it is
  u64 next_ = 0;
  u32 requests_ = 0;  // in the queue
  State state_ = State::kWaiting;
  u64 done_ = 0, total_ = 0;
  std::string problem_;

  // Used by whose turn it is.
  HostedEngine hosted_;
  std::optional<SessionPool> pool_;
};

}  // namespace bezel
