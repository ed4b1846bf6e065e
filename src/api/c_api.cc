// The C interface that WebAssembly exports: the only extern "C" of the project. Requests are JSON and overlap
// freely; each is answered once, by the import host.reply, possibly before bezel_request returns.
#include <cstdlib>
#include <unordered_set>

#include "api/service.h"
#include "base/host_call_web.h"
#include "io/host_source_web.h"

#define EXPORT(name) __attribute__((export_name(#name), used))

using namespace bezel;
using nlohmann::json;

HOST_IMPORT("host", "reply")
void host_reply(u32 call, u32 good, const char* text, std::size_t length, const f32* numbers,
                std::size_t count);
HOST_IMPORT("host", "event") void host_event(u32 call, const char* text, std::size_t length);
HOST_IMPORT("host", "pause") i32 host_pause(HostCall* call);
HOST_IMPORT("sink", "write") i32 sink_write(u32 id, const std::byte* bytes, std::size_t length);

namespace {

// A coroutine that nobody waits for: it ends itself.
struct Detached {
  struct promise_type {
    Detached get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::abort(); }
  };
};

const char* name_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInvalid:
      return "invalid";
    case ErrorKind::kUnsupported:
      return "unsupported";
    case ErrorKind::kNotFound:
      return "not-found";
    case ErrorKind::kIo:
      return "io";
    case ErrorKind::kMemory:
      return "memory";
    case ErrorKind::kCancelled:
      return "cancelled";
    case ErrorKind::kDeviceLost:
      return "device-lost";
  }
  return "invalid";
}

// Text from outside may not be UTF-8; what JSON cannot hold is replaced.
std::string dump(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

// Where the CPU computes, requests to stop arrive only in between.
Task<Status> pause() {
  co_return host_status(co_await host_call([](HostCall* call) { return host_pause(call); }));
}

ByteSink host_sink(u32 id) {
  return [id](Bytes bytes) { return host_status(sink_write(id, bytes.data(), bytes.size())); };
}

Service& service() {
  static Service instance({.open_source = host_source, .open_sink = host_sink, .pause = pause});
  return instance;
}

std::unordered_set<u32>& stopped() {
  static std::unordered_set<u32> calls;
  return calls;
}

Detached serve(u32 call, json request) {
  Caller caller;
  caller.event = [call](const json& event) {
    const std::string text = dump(event);
    host_event(call, text.data(), text.size());
  };
  caller.go_on = [call] { return !stopped().contains(call); };
  std::string method = request.value("method", std::string());
  Result<Answer> answer = co_await service().handle(std::move(method), request["args"], std::move(caller));
  stopped().erase(call);
  if (answer) {
    const std::string text = dump(answer->value);
    host_reply(call, 1, text.data(), text.size(), answer->numbers.data(), answer->numbers.size());
  } else {
    const std::string text =
        dump({{"kind", name_of(answer.error().kind)}, {"message", answer.error().message}});
    host_reply(call, 0, text.data(), text.size(), nullptr, 0);
  }
}

}  // namespace

extern "C" {

EXPORT(bezel_version) const char* bezel_version() { return BEZEL_VERSION; }
EXPORT(bezel_alloc) void* bezel_alloc(std::size_t bytes) { return std::malloc(bytes); }
EXPORT(bezel_free) void bezel_free(void* pointer) { std::free(pointer); }

// `text`: {"method": ..., "args": {...}}, written by our own host. Takes the allocation.
EXPORT(bezel_request) void bezel_request(u32 call, char* text, std::size_t length) {
  json request = json::parse(text, text + length, nullptr, false);
  std::free(text);
  if (!request.is_object()) request = json::object();
  serve(call, std::move(request));
}

// The request ends as soon as it can, with what it has or with the kind "cancelled".
EXPORT(bezel_stop) void bezel_stop(u32 call) { stopped().insert(call); }

// The host's answer to a call that it could not answer at once.
EXPORT(bezel_resume) void bezel_resume(HostCall* call, i32 answer) { call->resume(answer); }

}  // extern "C"
