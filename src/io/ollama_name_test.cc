#include "io/ollama_name.h"

#include <gtest/gtest.h>

namespace bezel {
namespace {

std::string path_of(std::string_view text) {
  const auto name = OllamaName::parse(text);
  return name ? name->path() : "error: " + name.error().message;
}

TEST(OllamaName, FillsInTheDefaults) {
  EXPECT_EQ(path_of("gemma4"), "registry.ollama.ai/library/gemma4/latest");
  EXPECT_EQ(path_of("gemma4:e2b"), "registry.ollama.ai/library/gemma4/e2b");
  EXPECT_EQ(path_of("library/gemma4:e2b"), "registry.ollama.ai/library/gemma4/e2b");
  EXPECT_EQ(path_of("registry.ollama.ai/library/gemma4:e2b"), "registry.ollama.ai/library/gemma4/e2b");
  EXPECT_EQ(path_of("someone/model.v2"), "registry.ollama.ai/someone/model.v2/latest");
  EXPECT_EQ(path_of("hf.co/bartowski/google_gemma-4-E2B-it-GGUF:Q4_K_M"),
            "hf.co/bartowski/google_gemma-4-E2B-it-GGUF/Q4_K_M");
  EXPECT_EQ(path_of("localhost:5000/me/mine"), "localhost:5000/me/mine/latest");
  EXPECT_EQ(path_of("localhost:5000/me/mine:1.0"), "localhost:5000/me/mine/1.0");
}

TEST(OllamaName, ShowsTheShortestForm) {
  for (const char* text :
       {"gemma4:e2b", "someone/model:latest", "hf.co/x/y:Q4_K_M", "hf.co/library/y:Q8_0"}) {
    const auto name = OllamaName::parse(text);
    ASSERT_TRUE(name) << name.error().message;
    EXPECT_EQ(name->display(), text);
  }
  EXPECT_EQ(OllamaName::parse("registry.ollama.ai/library/gemma4")->display(), "gemma4:latest");
}

TEST(OllamaName, IgnoresCaseWhenComparing) {
  EXPECT_TRUE(OllamaName::parse("HF.co/X/y:q4_k_m")->same(*OllamaName::parse("hf.co/x/Y:Q4_K_M")));
  EXPECT_FALSE(OllamaName::parse("gemma4:e2b")->same(*OllamaName::parse("gemma4:e4b")));
}

TEST(OllamaName, RefusesWhatCouldBecomeAnotherPath) {
  using namespace std::string_view_literals;
  for (const std::string_view text : {""sv,
                                      ":"sv,
                                      "gemma4:"sv,
                                      ":e2b"sv,
                                      "/gemma4"sv,
                                      "gemma4/"sv,
                                      "a//b"sv,
                                      "a/b/c/d"sv,
                                      ".."sv,
                                      "../gemma4"sv,
                                      "../../etc/passwd"sv,
                                      "x/../y"sv,
                                      "gemma4:.."sv,
                                      "gemma4:../../x"sv,
                                      "gemma4:a/b"sv,
                                      ".hidden"sv,
                                      "-x"sv,
                                      "a.b/model"sv,
                                      "host:1/a.b/model"sv,
                                      "a b"sv,
                                      "a\\b"sv,
                                      "gemma4:e2b\n"sv,
                                      "gem\0ma"sv,
                                      "gemm\xc3\xa4"sv,
                                      "a:b:c"sv,
                                      "gemma4@sha256"sv,
                                      "~/x"sv,
                                      "https://hf.co/x/y"sv}) {
    const auto name = OllamaName::parse(text);
    EXPECT_FALSE(name) << text << " became " << name->path();
    if (!name) EXPECT_EQ(name.error().kind, ErrorKind::kInvalid);
  }
}

TEST(OllamaName, LimitsTheLengthOfEachPart) {
  const std::string most(80, 'a');
  EXPECT_TRUE(OllamaName::parse(most + "/" + most + ":" + most));
  EXPECT_TRUE(OllamaName::parse(std::string(350, 'h') + "/x/y"));
  EXPECT_FALSE(OllamaName::parse(std::string(351, 'h') + "/x/y"));
  EXPECT_FALSE(OllamaName::parse(most + "a"));
  const auto long_tag = OllamaName::parse("x:" + most + "a");
  ASSERT_FALSE(long_tag);
  EXPECT_TRUE(long_tag.error().message.contains("the tag has 81 bytes, more than 80"))
      << long_tag.error().message;
}

TEST(OllamaName, ShowsNoControlCharacters) {
  const auto name = OllamaName::parse("\x1b[2Jgemma4");
  ASSERT_FALSE(name);
  EXPECT_FALSE(name.error().message.contains('\x1b'));
  EXPECT_LT(OllamaName::parse(std::string(1 << 20, '!')).error().message.size(), 1000u);
}

}  // namespace
}  // namespace bezel
