#include <cstdio>

#include "api/cli.h"
#include "base/format_text.h"

namespace bezel {
namespace {

Status tokenize(const std::string& name, const std::string& text, bool parse, bool pieces) {
  auto opened = TRY(open_model(name));
  const Tokenizer tokenizer = TRY(Tokenizer::load(opened.file));
  std::vector<u32> ids;
  tokenizer.encode(text, parse ? Specials::kParse : Specials::kPlain, ids);
  if (pieces) {
    for (const u32 id : ids) std::printf("%8u  %s\n", id, printable(tokenizer.piece(id)).c_str());
    return {};
  }
  std::string line;
  for (const u32 id : ids) line += format_text("{}{}", line.empty() ? "" : ",", id);
  std::printf("%s\n", line.c_str());
  return {};
}

}  // namespace

void add_tokenize(CLI::App& app, CommandResult& result) {
  auto* command =
      app.add_subcommand("tokenize", "Print the token ids of a text, without the <bos> a prompt begins with");
  struct Options {
    std::string model, text;
    bool specials = false, pieces = false;
  };
  auto options = std::make_shared<Options>();
  command->add_option("MODEL", options->model, "A .gguf file or an Ollama name")->required();
  command->add_option("TEXT", options->text, "The text")->required();
  command->add_flag("--specials", options->specials, "Read control tokens such as <|turn> in TEXT as such");
  command->add_flag("--pieces", options->pieces, "One token a line, with its piece");
  command->callback([options, &result] {
    result = tokenize(options->model, options->text, options->specials, options->pieces);
  });
}

}  // namespace bezel
