#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>

#include "api/cli.h"
#include "io/output_file.h"
#include "run/generate.h"

namespace bezel {
namespace {

using nlohmann::json;

struct RunOptions {
  std::string model, prompt, system, load_session, save_session;
  BackendChoice backend;
  MediaOptions media;
  bool greedy = false, raw = false, thinking = false, verbose = false;
  u32 max = 0, context = 4096;
  std::optional<f32> temperature, top_p, min_p, repetition_penalty;
  std::optional<u32> top_k;
  std::optional<u64> seed;
  std::vector<std::string> stops;
};

// One conversation on the terminal.
class Chat {
 public:
  Chat(Engine& engine, Session session, const RunOptions& options)
      : engine_(engine), session_(std::move(session)), options_(options) {
    if (!options.system.empty()) messages_.push_back({{"role", "system"}, {"content", options.system}});
  }

  Status answer(const std::string& text) {
    GenerateOptions generation;
    generation.sampling = sampling();
    generation.max_tokens = options_.max;
    generation.stops = options_.stops;
    generation.go_on = [] { return !interrupted(); };
    std::string reply;
    generation.on_event = [&](const OutputEvent& event) { return show(event, reply); };

    // A message whose answer fails is forgotten: one that is too long must not spoil all that follow.
    json messages = messages_;
    Prompt prompt;
    if (options_.raw) {
      prompt.ids = engine_.encode_text(text);
    } else {
      messages.push_back({{"role", "user"}, {"content", TRY(with_media(text))}});
      const auto items =
          TRY(render_chat(messages, {.form = engine_.chat_template(), .thinking = options_.thinking}));
      prompt = TRY(engine_.encode_chat(items, media_));
      generation.parsing = {.start_in_thought = ends_in_thought(items), .thinking = options_.thinking};
    }
    const auto begin = std::chrono::steady_clock::now();
    const Reply done = TRY(run_now(generate(engine_, session_, std::move(prompt), std::move(generation))));
    const std::chrono::duration<f64> seconds = std::chrono::steady_clock::now() - begin;
    std::printf("\n");
    if (options_.verbose) {
      std::fprintf(stderr, "%u prompt tokens (%u re-used), %u generated, %.2f s\n", done.prompt_tokens,
                   done.reused_tokens, done.generated_tokens, seconds.count());
    }
    if (!options_.raw) {
      messages.push_back({{"role", "assistant"}, {"content", reply}});
      messages_ = std::move(messages);
      shown_ = true;
    }
    if (done.stopped_by_caller) return fail(ErrorKind::kCancelled, "The answer was stopped.");
    return {};
  }

  Status save(const std::string& path) const {
    auto file = TRY(OutputFile::create(path));
    TRY(run_now(session_.save([&](Bytes bytes) { return file.write(bytes); })));
    return file.finish();
  }

 private:
  // The first message that is answered shows what the command line names.
  Result<json> with_media(const std::string& text) {
    if (shown_ || options_.media.empty()) return json(text);
    json parts = json::array();
    std::vector<Medium> media;
    const auto add = [&](const char* type, Medium medium) {
      parts.push_back({{"type", type}});
      media.push_back(std::move(medium));
    };
    Towers& towers = engine_.towers();
    for (const auto& path : options_.media.images) add("image", TRY(look_at(towers, path, options_.media)));
    for (const auto& path : options_.media.sounds) add("audio", TRY(listen_to(towers, path)));
    for (const auto& path : options_.media.videos) add("video", TRY(watch(towers, path, options_.media)));
    if (!text.empty()) parts.push_back({{"type", "text"}, {"text", text}});
    media_ = std::move(media);
    return parts;
  }

  SamplerOptions sampling() {
    SamplerOptions s = engine_.sampling();
    if (options_.temperature) s.temperature = *options_.temperature;
    if (options_.top_k) s.top_k = *options_.top_k;
    if (options_.top_p) s.top_p = *options_.top_p;
    if (options_.min_p) s.min_p = *options_.min_p;
    if (options_.repetition_penalty) s.repetition_penalty = *options_.repetition_penalty;
    if (options_.greedy) s.temperature = 0;
    s.seed = options_.seed ? *options_.seed + turns_++
                           : (u64{std::random_device{}()} << 32) | std::random_device{}();
    return s;
  }

  static bool show(const OutputEvent& event, std::string& reply) {
    static const bool colours = isatty(STDOUT_FILENO) != 0;
    switch (event.kind) {
      case OutputEvent::Kind::kText:
        reply += event.text;
        std::fwrite(event.text.data(), 1, event.text.size(), stdout);
        break;
      case OutputEvent::Kind::kThinking:
        std::printf("%s%s%s", colours ? "\033[2m" : "", event.text.c_str(), colours ? "\033[0m" : "");
        break;
      case OutputEvent::Kind::kToolCall:
        std::printf("[calls %s %s]", event.name.c_str(), event.arguments.c_str());
        break;
      case OutputEvent::Kind::kMalformedCall:
        std::printf("[a call that cannot be read: %s]", event.text.c_str());
        break;
    }
    std::fflush(stdout);
    return true;
  }

  Engine& engine_;
  Session session_;
  const RunOptions& options_;
  json messages_ = json::array();
  std::vector<Medium> media_;
  bool shown_ = false;
  u64 turns_ = 0;
};

// Lines from the terminal until they end.
Status converse(Chat& chat) {
  const bool terminal = isatty(STDIN_FILENO) != 0;
  if (terminal) std::printf("Type a message; Ctrl-C stops an answer, Ctrl-D ends.\n");
  std::string line;
  while (true) {
    if (terminal) std::printf("> "), std::fflush(stdout);
    clear_interrupt();
    if (!std::getline(std::cin, line)) break;
    if (line.empty()) continue;
    const Status status = chat.answer(line);
    if (status) continue;
    if (!terminal) return status;
    // An answer that fails leaves the conversation usable: say why and go on.
    if (status.error().kind != ErrorKind::kCancelled)
      std::fprintf(stderr, "bezel: %s\n", status.error().message.c_str());
  }
  if (terminal) std::printf("\n");
  return {};
}

Status run(RunOptions& options) {
  if (options.model.empty()) options.model = checkout_file("models/nano.gguf");
  if (options.model.empty()) {
    return invalid(
        "No model was named. Give one with -m: a .gguf file, or an Ollama name such as gemma4:e2b.");
  }
  catch_interrupts();
  auto opened = TRY(open_model(options.model, options.media.projector));
  if (options.system.empty()) options.system = opened.system;
  const auto loaded = TRY(load_engine(std::move(opened), options.backend));
  const auto& engine = loaded.engine;
  const u32 context = std::min(options.context, engine->config().context);
  Session session = TRY(Session::create(engine->backend(), context));
  if (!options.load_session.empty()) {
    const auto source = TRY(open_file(options.load_session));
    TRY(run_now(session.restore(*source)));
  }
  Chat chat(*engine, std::move(session), options);
  TRY(options.prompt.empty() && options.media.empty() ? converse(chat) : chat.answer(options.prompt));
  return options.save_session.empty() ? Status{} : chat.save(options.save_session);
}

}  // namespace

void add_run(CLI::App& app, CommandResult& result) {
  auto* command = app.add_subcommand("run", "Answer one prompt, or chat when there is none");
  auto o = std::make_shared<RunOptions>();
  command->add_option("PROMPT", o->prompt, "What to say; without it, read lines and chat");
  command->add_option("-m,--model", o->model,
                      "A .gguf file or an Ollama name; the embedded toy model otherwise");
  command->add_option("--system", o->system, "Instructions that come before the conversation");
  command->add_flag("--thinking", o->thinking, "Let the model think before it answers, and show it");
  command->add_flag("--raw", o->raw, "Continue PROMPT as plain text, without the chat format");
  command->add_option("--max", o->max, "Stop after this many tokens; 0 means when the context is full")
      ->capture_default_str();
  command->add_option("--context", o->context, "Tokens to remember")
      ->capture_default_str()
      ->check(CLI::Range(1u, 1u << 24));
  command->add_flag("--greedy", o->greedy, "Always take the likeliest token");
  command->add_option("--temperature", o->temperature, "Above 1 bolder, below 1 safer, 0 greedy")
      ->check(CLI::Range(0.0, 100.0));
  command->add_option("--top-k", o->top_k, "Choose among the k likeliest tokens; 0 means all");
  command->add_option("--top-p", o->top_p, "Choose among the tokens that make up this share")
      ->check(CLI::Range(0.0, 1.0));
  command->add_option("--min-p", o->min_p, "Leave out tokens below this share of the best")
      ->check(CLI::Range(0.0, 1.0));
  command->add_option("--repetition-penalty", o->repetition_penalty, "Above 1: avoid what was said")
      ->check(CLI::Range(0.01, 100.0));
  command->add_option("--seed", o->seed, "The same seed gives the same text");
  command->add_option("--stop", o->stops, "End the answer where this text appears; may be repeated")
      ->allow_extra_args(false);
  command->add_flag("-v,--verbose", o->verbose, "Report tokens and time");
  command->add_option(
      "--load-session", o->load_session,
      "Start from a saved session: what the prompt has in common with it is not computed again");
  command->add_option("--save-session", o->save_session, "Save the session here at the end");
  add_media_options(*command, o->media);
  command->add_option("--video", o->media.videos, "A folder with the frames of a video; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--fps", o->media.fps, "Frames a second of --video")
      ->check(CLI::Range(0.001, 1000.0))
      ->capture_default_str();
  add_backend_option(*command, o->backend);
  command->callback([o, &result] { result = run(*o); });
}

}  // namespace bezel
