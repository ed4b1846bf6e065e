// From a prompt to a reply: sample, decode, split into answer, thought and calls, stop.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "run/engine.h"
#include "run/session.h"
#include "text/output_parser.h"

namespace bezel {

struct GenerateOptions {
  SamplerOptions sampling;
  u32 max_tokens = 0;              // 0: until the context is full
  std::vector<std::string> stops;  // end the answer when they appear in it; not part of it
  OutputParser::Options parsing;

  // All optional. Returning false from on_event or go_on stops; what was generated so far stays in the
  // session.
  std::function<bool(const OutputEvent&)> on_event;
  std::function<void(const Sample&)> on_token;
  std::function<bool()> go_on;
};

struct Reply {
  FinishReason reason = FinishReason::kStop;
  bool stopped_by_caller = false;
  u32 prompt_tokens = 0;
  u32 reused_tokens = 0;  // of the prompt, already in the session
  u32 generated_tokens = 0;
};

// Brings the session to `prompt`, re-using what it already holds, and generates from there.
Task<Result<Reply>> generate(Engine& engine, Session& session, Prompt prompt, GenerateOptions options);

}  // namespace bezel
