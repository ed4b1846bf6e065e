// The C interface that WebAssembly exports: the only extern "C" of the project. Strings and arrays cross as a
// pointer and a length inside the module's memory; the host allocates with bezel_alloc and frees with
// bezel_free. A call that fails returns 0 or -1, and bezel_message then says why.
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "run/generate.h"

#define EXPORT(name) __attribute__((export_name(#name), used))

namespace {

using namespace bezel;

struct Handle {
  std::unique_ptr<Engine> engine;
  std::optional<Session> session;
};

// What the last call has to say: the text it produced, or its error.
std::string g_message;

template <class T>
bool failed(const Result<T>& result) {
  if (!result) g_message = result.error().message;
  return !result;
}

Result<std::unique_ptr<Handle>> open(std::vector<std::byte> bytes, u32 context) {
  std::vector<std::unique_ptr<Source>> parts;
  parts.push_back(memory_source(std::move(bytes), "the model"));
  Gguf file = TRY(run_now(Gguf::open(std::move(parts))));
  auto handle = std::make_unique<Handle>();
  handle->engine = TRY(run_now(Engine::load(std::move(file))));
  handle->session = TRY(Session::create(handle->engine->backend(), context));
  return handle;
}

}  // namespace

extern "C" {

EXPORT(bezel_version) const char* bezel_version() { return BEZEL_VERSION; }
EXPORT(bezel_alloc) void* bezel_alloc(std::size_t bytes) { return std::malloc(bytes); }
EXPORT(bezel_free) void bezel_free(void* pointer) { std::free(pointer); }
EXPORT(bezel_message) const char* bezel_message() { return g_message.data(); }
EXPORT(bezel_message_length) std::size_t bezel_message_length() { return g_message.size(); }

// Copies the file's bytes. Gives a handle for the calls below, 0 on failure.
EXPORT(bezel_open) Handle* bezel_open(const std::byte* file, std::size_t length, u32 context) {
  auto handle = open({file, file + length}, context);
  return failed(handle) ? nullptr : handle->release();
}

EXPORT(bezel_close) void bezel_close(Handle* handle) { delete handle; }

// The token ids of a text, without <bos>, written to `out`; gives their number, which may exceed `capacity`.
EXPORT(bezel_tokenize)
std::size_t bezel_tokenize(const Handle* handle, const char* text, std::size_t length, u32* out,
                           std::size_t capacity) {
  std::vector<u32> ids;
  handle->engine->tokenizer().encode({text, length}, Specials::kPlain, ids);
  std::memcpy(out, ids.data(), std::min(capacity, ids.size()) * sizeof(u32));
  return ids.size();
}

// Appends tokens and writes the logits of the last one, one for each token of the vocabulary. Gives the
// vocabulary's size, or -1.
EXPORT(bezel_feed) int bezel_feed(Handle* handle, const u32* ids, std::size_t count, f32* logits) {
  const Status status = run_now(handle->session->feed({ids, count}));
  if (failed(status)) return -1;
  std::ranges::copy(handle->session->logits(), logits);
  return static_cast<int>(handle->session->logits().size());
}

// Continues a plain text; the continuation is then in bezel_message. `temperature` 0 is greedy. Gives the
// number of tokens generated, or -1.
EXPORT(bezel_complete)
int bezel_complete(Handle* handle, const char* text, std::size_t length, u32 max_tokens, f32 temperature,
                   u32 seed) {
  GenerateOptions options;
  options.sampling = handle->engine->sampling();
  options.sampling.temperature = temperature;
  options.sampling.seed = seed;
  options.max_tokens = max_tokens;
  std::string answer;
  options.on_event = [&](const OutputEvent& event) {
    answer += event.text;
    return true;
  };
  const auto prompt = handle->engine->encode_text({text, length});
  const auto reply = run_now(generate(*handle->engine, *handle->session, prompt, std::move(options)));
  if (failed(reply)) return -1;
  g_message = std::move(answer);
  return static_cast<int>(reply->generated_tokens);
}

}  // extern "C"
