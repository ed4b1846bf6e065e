#include "api/cli.h"

#include <csignal>
#include <cstdio>

#include "base/format_text.h"

int main(int argc, char** argv) {
  CLI::App app{"bezel runs Gemma 4 on your own device."};
  app.set_version_flag("--version", "bezel " BEZEL_VERSION);
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);
  app.footer(
      "MODEL is a .gguf file (of a split model, any part) or a name from Ollama's store, such as "
      "gemma4:e2b.\n"
      "'bezel COMMAND --help' explains a command.");
  bezel::CommandResult result;
  bezel::add_run(app, result);
  bezel::add_serve(app, result);
  bezel::add_inspect(app, result);
  bezel::add_tokenize(app, result);
  bezel::add_eval(app, result);
  bezel::add_synth(app, result);
  bezel::add_bench(app, result);
  bezel::add_tune(app, result);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    // For an unknown command the parser only says that it misses one.
    const auto unknown = app.get_subcommands().empty() ? app.remaining() : std::vector<std::string>();
    const std::string problem =
        unknown.empty()
            ? error.what()
            : bezel::format_text("There is no {} {}.", unknown[0].starts_with('-') ? "option" : "command",
                                 bezel::quote(unknown[0]));
    std::fprintf(stderr, "bezel: %s\nTry 'bezel --help'.\n", problem.c_str());
    return 2;
  }
  if (result && !*result) {
    std::fprintf(stderr, "bezel: %s\n", result->error().message.c_str());
    return result->error().kind == bezel::ErrorKind::kCancelled ? 130 : 1;
  }
  return 0;
}
