#include "io/resolve.h"

#include "io/sha256.h"
#include "support.h"
#include "temp_folder.h"

namespace bezel {
namespace {

class ResolveTest : public testing::Test {
 protected:
  std::string add_blob(const std::string& kind, std::string_view text) {
    Sha256 sha;
    sha.update(std::as_bytes(std::span(text)));
    const std::string digits = to_hex(sha.finish());
    folder_.write("blobs/sha256-" + digits, text);
    return R"({"mediaType":"application/vnd.ollama.image.)" + kind + R"(","digest":"sha256:)" + digits +
           R"(","size":)" + std::to_string(text.size()) + "}";
  }
  void add_model(const std::string& path, const std::string& layers) {
    folder_.write("manifests/" + path,
                  R"({"config":)" + add_blob("config", "{}") + R"(,"layers":[)" + layers + "]}");
  }
  Result<ModelFiles> resolve(const std::string& text) {
    return resolve_model(text, OllamaStore::at(folder_.path()));
  }
  TempFolder folder_;
};

TEST_F(ResolveTest, AnExistingFileIsAPathWhateverItsName) {
  const std::string path = folder_.write("weights.bin", "w");
  for (const std::string& text : {path, data_path("tiny-e2b.gguf"), "./" + data_path("tiny-e2b.gguf")}) {
    EXPECT_TRUE(looks_like_path(text));
    const auto files = resolve(text);
    ASSERT_OK(files);
    EXPECT_EQ(files->model, text);
    EXPECT_FALSE(files->projector || files->draft || files->ollama);
    EXPECT_TRUE(files->adapters.empty());
  }
}

TEST_F(ResolveTest, AnythingElseIsAnOllamaName) {
  add_model("registry.ollama.ai/library/gemma4/e2b",
            add_blob("model", "weights") + "," + add_blob("projector", "p") + "," + add_blob("adapter", "a") +
                "," + add_blob("draft", "d"));
  EXPECT_FALSE(looks_like_path("gemma4:e2b"));
  EXPECT_FALSE(looks_like_path("hf.co/x/y-GGUF:Q4_K_M"));
  const auto files = resolve("gemma4:e2b");
  ASSERT_OK(files);
  ASSERT_TRUE(files->ollama);
  EXPECT_EQ(files->ollama->name, "gemma4:e2b");
  EXPECT_EQ(files->model, files->ollama->model.path);
  EXPECT_EQ(files->projector, files->ollama->projector->path);
  EXPECT_EQ(files->draft, files->ollama->draft->path);
  EXPECT_EQ(files->adapters, std::vector<std::string>{files->ollama->adapters[0].path});
}

TEST_F(ResolveTest, AFolderDoesNotHideAModel) {
  add_model("registry.ollama.ai/library/tests/latest", add_blob("model", "weights"));
  ASSERT_OK(resolve("tests"));  // the repository has a folder of that name
  const auto missing = resolve("tests/data");
  ASSERT_FALSE(missing);
  EXPECT_TRUE(missing.error().message.contains("'tests/data' is a folder, not a file"))
      << missing.error().message;
}

TEST_F(ResolveTest, AMissingPathIsNotLookedUpInTheStore) {
  for (const char* text : {"no/such/model.gguf", "MODEL.GGUF", "/no/such/file", "./gemma4", "../gemma4"}) {
    EXPECT_TRUE(looks_like_path(text)) << text;
    const auto files = resolve(text);
    ASSERT_FALSE(files) << text;
    EXPECT_TRUE(files.error().message.starts_with(text)) << files.error().message;
    EXPECT_FALSE(files.error().message.contains("Ollama")) << files.error().message;
  }
  const auto folder = resolve("./tests");
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().message, "./tests is not a file.");
}

TEST_F(ResolveTest, TheErrorNamesBothThingsThatWereTried) {
  for (const char* text : {"gemma4:e2b", "some folder/model"}) {
    const auto files = resolve(text);
    ASSERT_FALSE(files) << text;
    EXPECT_EQ(files.error().kind, ErrorKind::kNotFound);
    EXPECT_TRUE(files.error().message.contains("is not a file")) << files.error().message;
    EXPECT_TRUE(files.error().message.contains("as an Ollama model")) << files.error().message;
  }
  EXPECT_EQ(resolve("").error().message, "The model's path or name is empty.");
  EXPECT_TRUE(resolve("gemma4:e2b").error().message.contains(folder_.path() + "/manifests/"));
}

TEST_F(ResolveTest, ABrokenModelKeepsItsOwnError) {
  folder_.write("manifests/registry.ollama.ai/library/broken/latest", "nonsense");
  const auto files = resolve("broken");
  ASSERT_FALSE(files);
  EXPECT_EQ(files.error().kind, ErrorKind::kInvalid);
  EXPECT_TRUE(files.error().message.ends_with("broken/latest is not JSON.")) << files.error().message;
}

}  // namespace
}  // namespace bezel
