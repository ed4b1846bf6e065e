#include <algorithm>

#include "api/model_host.h"

namespace bezel {

using nlohmann::json;
using namespace std::chrono_literals;

// One's place in the queue, given up when it ends.
class ModelHost::Turn {
 public:
  // `answers`: for a request, and not only to load the model.
  Turn(ModelHost& host, bool answers) : host_(host), answers_(answers) {
    const std::scoped_lock lock(host.mutex_);
    if (answers_) ++host.requests_;
    number_ = host.next_++;
    host.queue_.push_back(number_);
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() {
    const std::scoped_lock lock(host_.mutex_);
    std::erase(host_.queue_, number_);
    if (answers_) --host_.requests_;
    host_.changed_.notify_all();
  }

  bool wait(const std::function<bool()>& go_on) {
    while (!go_on || go_on()) {
      std::unique_lock lock(host_.mutex_);
      if (host_.changed_.wait_for(lock, 100ms, [&] { return host_.queue_.front() == number_; })) return true;
    }
    return false;
  }

 private:
  ModelHost& host_;
  bool answers_;
  u64 number_ = 0;
};

Result<std::unique_ptr<ModelHost::Turn>> ModelHost::wait_for_turn(const std::function<bool()>& go_on,
                                                                  bool answers) {
  auto turn = std::make_unique<Turn>(*this, answers);
  if (!turn->wait(go_on)) return fail(ErrorKind::kCancelled, "The request was given up while it waited.");
  return turn;
}

json ModelHost::status() const {
  static constexpr const char* kNames[] = {"waiting", "loading", "ready", "failed"};
  const std::scoped_lock lock(mutex_);
  json out{{"name", name_}, {"state", kNames[static_cast<int>(state_)]}, {"requests", requests_}};
  if (state_ == State::kLoading) out["progress"] = {{"done", done_}, {"total", total_}};
  if (state_ == State::kFailed) out["error"] = problem_;
  return out;
}

Status ModelHost::load_in_turn(const std::function<bool()>& go_on) {
  if (hosted_.engine) return {};
  const auto set = [&](State state, std::string problem) {
    const std::scoped_lock lock(mutex_);
    state_ = state;
    problem_ = std::move(problem);
  };
  set(State::kLoading, "");
  auto loaded = load_([&](u64 done, u64 total) {
    const std::scoped_lock lock(mutex_);
    done_ = done;
    total_ = total;
    return !go_on || go_on();
  });
  if (!loaded) {
    // A file that is no model is not the fault of whoever asks a question.
    ErrorKind& kind = loaded.error().kind;
    if (kind != ErrorKind::kCancelled && kind != ErrorKind::kMemory) kind = ErrorKind::kIo;
    set(loaded.error().kind == ErrorKind::kCancelled ? State::kWaiting : State::kFailed,
        loaded.error().message);
    return std::unexpected(std::move(loaded).error());
  }
  hosted_ = std::move(*loaded);
  const u32 most = hosted_.engine->config().context;
  pool_.emplace(hosted_.engine->backend(), hosted_.device.get(),
                std::min(context_ > 0 ? context_ : 4096, most), sessions_);
  set(State::kReady, "");
  return {};
}

Status ModelHost::prepare(const std::function<bool()>& go_on) {
  const auto turn = TRY(wait_for_turn(go_on, false));
  return load_in_turn(go_on);
}

void ModelHost::unload() {
  pool_.reset();
  hosted_.engine.reset();
  hosted_ = {};
  const std::scoped_lock lock(mutex_);
  state_ = State::kWaiting;
}

Result<json> ModelHost::complete(const json& request, ChatCallbacks callbacks) {
  const auto received = std::chrono::steady_clock::now();
  const auto turn = TRY(wait_for_turn(callbacks.go_on, true));
  TRY(load_in_turn(callbacks.go_on));
  const auto read_media = [&](const json& part) {
    const auto go_on = [&](u64, u64) { return !callbacks.go_on || callbacks.go_on(); };
    return read_inline_media(hosted_.engine->towers(), part, go_on);
  };
  ChatRequest chat = TRY(run_now(read_chat_request(*hosted_.engine, request, hosted_.system, read_media)));
  chat.received = received;
  Session* session = TRY(run_now(pool_->take(chat.prompt)));
  auto done = run_now(complete_chat(*hosted_.engine, *session, std::move(chat), name_, std::move(callbacks)));
  // A device that went away takes everything with it; the next request begins anew.
  if (!done && done.error().kind == ErrorKind::kDeviceLost) unload();
  return done;
}

}  // namespace bezel
