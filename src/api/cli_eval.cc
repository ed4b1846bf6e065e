#include <algorithm>
#include <charconv>
#include <cstdio>

#include "api/cli.h"
#include "base/format_text.h"
#include "base/quote.h"
#include "io/output_file.h"
#include "run/session.h"

namespace bezel {
namespace {

Result<std::vector<u32>> parse_ids(std::string_view text) {
  std::vector<u32> ids;
  while (!text.empty()) {
    const auto comma = std::min(text.find(','), text.size());
    const std::string_view word = text.substr(0, comma);
    u32 id = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), id);
    if (error != std::errc() || end != word.data() + word.size()) {
      return invalid("{} in --ids is not a token id; write them as 2,17,105.", quote(word));
    }
    ids.push_back(id);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  if (ids.empty()) return invalid("--ids is empty; give at least one token id.");
  return ids;
}

// NumPy's format, version 1.0: float32, C order.
Status write_npy(const std::string& path, std::span<const f32> values, std::size_t rows, std::size_t cols) {
  std::string header =
      format_text("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}", rows, cols);
  constexpr std::size_t kPreamble = 10;
  header.append(63 - (kPreamble + header.size()) % 64, ' ').push_back('\n');
  std::string start = "\x93NUMPY";
  start += {1, 0, static_cast<char>(header.size() & 0xFF), static_cast<char>(header.size() >> 8)};
  start += header;
  auto file = TRY(OutputFile::create(path));
  TRY(file.write(std::as_bytes(std::span(start))));
  TRY(file.write(std::as_bytes(values)));
  return file.finish();
}

struct EvalOptions {
  std::string model, ids, logits, soft_tokens;
  BackendChoice backend;
  MediaOptions media;
  bool bf16_rope = false;
};

// The runs of a placeholder among the ids take the soft tokens of the given media, in order.
Status place(const Engine& engine, std::string_view placeholder, const std::vector<Medium>& media,
             Prompt& prompt) {
  const auto id = engine.tokenizer().find(placeholder);
  std::size_t next = 0;
  for (u32 at = 0; id && at < prompt.size();) {
    if (prompt.ids[at] != *id) {
      ++at;
      continue;
    }
    u32 end = at;
    while (end < prompt.size() && prompt.ids[end] == *id) ++end;
    if (next == media.size())
      return invalid("--ids has {} runs of {}, but {} were given.", next + 1, placeholder, media.size());
    const auto& soft = media[next++].frames[0].tokens;
    if (soft->count != end - at) {
      return invalid("The {} tokens {} from position {} on do not match: what was given takes {}.", end - at,
                     placeholder, at, soft->count);
    }
    prompt.soft.push_back({at, soft});
    at = end;
  }
  if (next < media.size())
    return invalid("{} were given, but --ids has only {} runs of {}.", media.size(), next, placeholder);
  return {};
}

Result<Prompt> read_prompt(Engine& engine, const EvalOptions& options) {
  Prompt prompt{TRY(parse_ids(options.ids))};
  std::vector<Medium> pictures, sounds;
  for (const auto& path : options.media.images)
    pictures.push_back(TRY(look_at(engine.towers(), path, options.media)));
  for (const auto& path : options.media.sounds) sounds.push_back(TRY(listen_to(engine.towers(), path)));
  if (!options.soft_tokens.empty()) {
    std::vector<f32> rows;
    for (const auto* media : {&pictures, &sounds}) {
      for (const Medium& medium : *media) {
        const auto& soft = medium.frames[0].tokens->rows;
        rows.insert(rows.end(), soft.begin(), soft.end());
      }
    }
    TRY(write_npy(options.soft_tokens, rows, rows.size() / engine.config().width, engine.config().width));
  }
  TRY(place(engine, marker::kImage, pictures, prompt));
  TRY(place(engine, marker::kAudio, sounds, prompt));
  std::ranges::sort(prompt.soft, {}, &SoftRun::first);
  return prompt;
}

Status eval(const EvalOptions& options) {
  LoadOptions load;
  load.bf16_rope = options.bf16_rope;
  const auto loaded = TRY(
      load_engine(TRY(open_model(options.model, options.media.projector)), options.backend, std::move(load)));
  const auto& engine = loaded.engine;
  Prompt prompt = TRY(read_prompt(*engine, options));
  const std::vector<u32> ids = prompt.ids;
  auto session = TRY(Session::create(engine->backend(), prompt.size()));
  std::vector<f32> logits;
  TRY(run_now(session.feed_all(std::move(prompt), logits)));
  const std::size_t vocab = engine->config().vocab;
  if (!options.logits.empty()) return write_npy(options.logits, logits, ids.size(), vocab);
  for (std::size_t t = 0; t < ids.size(); ++t) {
    const auto row = std::span(logits).subspan(t * vocab, vocab);
    const auto best = static_cast<u32>(std::ranges::max_element(row) - row.begin());
    std::printf("%6zu  token %-8u next %-8u %10.5f  %s\n", t, ids[t], best, row[best],
                printable(engine->tokenizer().piece(best)).c_str());
  }
  return {};
}

}  // namespace

void add_eval(CLI::App& app, CommandResult& result) {
  auto* command = app.add_subcommand("eval", "Compute the logits of every token of a sequence");
  auto options = std::make_shared<EvalOptions>();
  command->add_option("MODEL", options->model, "A .gguf file or an Ollama name")->required();
  command
      ->add_option("--ids", options->ids,
                   "Token ids, separated by commas; each run of <|image|> or <|audio|> takes the\nsoft "
                   "tokens of the next --image or --audio")
      ->required();
  command->add_option("--logits", options->logits, "Write them here: NumPy, float32, tokens x vocabulary");
  command->add_flag("--bf16-rope", options->bf16_rope,
                    "Round the rotary frequencies to bfloat16, as PyTorch does when it casts a whole model;\n"
                    "only to compare with values that were made so");
  add_media_options(*command, options->media);
  command->add_option("--soft-tokens", options->soft_tokens,
                      "Write what the encoders gave here: NumPy, float32, pictures first");
  add_backend_option(*command, options->backend);
  command->callback([options, &result] { result = eval(*options); });
}

}  // namespace bezel
