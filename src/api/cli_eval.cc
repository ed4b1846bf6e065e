#include <charconv>
#include <cstdio>

#include "api/cli.h"
#include "base/quoted.h"
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
      return invalid("{} in --ids is not a token id; write them as 2,17,105.", bezel::quoted(word));
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
      std::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}", rows, cols);
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

Status eval(const std::string& name, const std::string& id_list, const std::string& path, bool bf16_rope,
            const BackendChoice& backend) {
  const auto ids = TRY(parse_ids(id_list));
  LoadOptions load;
  load.bf16_rope = bf16_rope;
  const auto loaded = TRY(load_engine(TRY(open_model(name)), backend, std::move(load)));
  const auto& engine = loaded.engine;
  auto session = TRY(Session::create(engine->backend(), static_cast<u32>(ids.size())));
  std::vector<f32> logits;
  TRY(run_now(session.feed_all({ids}, logits)));
  const std::size_t vocab = engine->config().vocab;
  if (!path.empty()) return write_npy(path, logits, ids.size(), vocab);
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
  struct Options {
    std::string model, ids, logits;
    BackendChoice backend;
    bool bf16_rope = false;
  };
  auto options = std::make_shared<Options>();
  command->add_option("MODEL", options->model, "A .gguf file or an Ollama name")->required();
  command->add_option("--ids", options->ids, "Token ids, separated by commas")->required();
  command->add_option("--logits", options->logits, "Write them here: NumPy, float32, tokens x vocabulary");
  command->add_flag("--bf16-rope", options->bf16_rope,
                    "Round the rotary frequencies to bfloat16, as PyTorch does when it casts a whole model;\n"
                    "only to compare with values that were made so");
  add_backend_option(*command, options->backend);
  command->callback([options, &result] {
    result = eval(options->model, options->ids, options->logits, options->bf16_rope, options->backend);
  });
}

}  // namespace bezel
