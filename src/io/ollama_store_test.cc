#include "io/ollama_store.h"

#include <sys/stat.h>
#include <unistd.h>

#include "io/ollama_manifest.h"
#include "io/sha256.h"
#include "support.h"
#include "temp_folder.h"

namespace bezel {
namespace {

using nlohmann::json;

std::string digits_of(std::string_view text) {
  Sha256 sha;
  sha.update(std::as_bytes(std::span(text)));
  return to_hex(sha.finish());
}

// A store in a temporary folder, filled as Ollama fills it.
class OllamaStoreTest : public testing::Test {
 protected:
  json add_blob(const std::string& kind, std::string_view text, const std::string& file_prefix = "sha256-") {
    folder_.write("blobs/" + file_prefix + digits_of(text), text);
    return {{"mediaType", "application/vnd.ollama.image." + kind},
            {"digest", "sha256:" + digits_of(text)},
            {"size", text.size()}};
  }
  json config(const json& fields = {{"model_format", "gguf"}, {"model_family", "gemma4"}}) {
    json blob = add_blob("config", fields.dump());
    blob["mediaType"] = "application/vnd.docker.container.image.v1+json";
    return blob;
  }
  json manifest(const std::vector<json>& layers) {
    return {{"schemaVersion", 2}, {"config", config()}, {"layers", layers}};
  }
  std::string add_manifest(const std::string& path, const json& manifest) {
    return folder_.write("manifests/" + path, manifest.dump());
  }
  Result<OllamaModel> resolve_manifest(const std::string& text) {
    folder_.write("manifests/registry.ollama.ai/library/x/latest", text);
    return store().resolve("x");
  }
  OllamaStore store() const { return OllamaStore::at(folder_.path()); }

  TempFolder folder_;
};

void expect_error(const Result<OllamaModel>& result, ErrorKind kind, std::string_view part) {
  ASSERT_FALSE(result) << "expected: " << part;
  EXPECT_EQ(static_cast<int>(result.error().kind), static_cast<int>(kind)) << result.error().message;
  EXPECT_TRUE(result.error().message.contains(part)) << result.error().message << "\nexpected: " << part;
}

TEST_F(OllamaStoreTest, ResolvesEverythingAModelConsistsOf) {
  const json cfg = config({{"model_format", "gguf"},
                           {"model_family", "gemma4"},
                           {"model_type", "8.0B"},
                           {"file_type", "Q4_K_M"},
                           {"renderer", "gemma4"},
                           {"parser", "gemma4-parser"},
                           {"requires", "0.20.0"},
                           {"model_families", {"gemma4"}},
                           {"draft", json::object()}});
  const json layers = {add_blob("license", "Apache"),
                       add_blob("license", "and more"),
                       add_blob("params", R"({"temperature":1,"top_k":64})"),
                       add_blob("model", "the weights"),
                       add_blob("projector", "the projector"),
                       add_blob("draft", "the drafter"),
                       add_blob("adapter", "second by digest?"),
                       add_blob("adapter", "or first?"),
                       add_blob("system", "Be brief."),
                       add_blob("messages", "[]"),
                       add_blob("template", "{{ .Prompt }}"),
                       add_blob("embed", "obsolete")};
  add_manifest("registry.ollama.ai/library/gemma4/e2b", {{"config", cfg}, {"layers", layers}});
  for (const char* name :
       {"gemma4:e2b", "library/gemma4:e2b", "registry.ollama.ai/library/gemma4:e2b", "GEMMA4:E2B"}) {
    const auto model = store().resolve(name);
    ASSERT_OK(model) << name;
    EXPECT_EQ(model->name, "gemma4:e2b");
    EXPECT_EQ(model->model.path, folder_.path() + "/blobs/sha256-" + digits_of("the weights"));
    EXPECT_EQ(model->model.bytes, 11u);
    EXPECT_EQ(model->model.digest, "sha256:" + digits_of("the weights"));
    ASSERT_TRUE(model->projector && model->draft);
    EXPECT_EQ(model->projector->bytes, 13u);
    EXPECT_EQ(model->draft->digest, "sha256:" + digits_of("the drafter"));
    ASSERT_EQ(model->adapters.size(), 2u);
    EXPECT_EQ(model->adapters[0].digest, "sha256:" + digits_of("second by digest?"));
    EXPECT_EQ(model->family, "gemma4");
    EXPECT_EQ(model->model_type, "8.0B");
    EXPECT_EQ(model->file_type, "Q4_K_M");
    EXPECT_EQ(model->renderer, "gemma4");
    EXPECT_EQ(model->parser, "gemma4-parser");
    EXPECT_EQ(model->requires_version, "0.20.0");
    EXPECT_EQ(model->params, R"({"temperature":1,"top_k":64})");
    EXPECT_EQ(model->system, "Be brief.");
    EXPECT_EQ(model->messages, "[]");
    EXPECT_EQ(model->chat_template, "{{ .Prompt }}");
    EXPECT_TRUE(verify_blob(model->model.path, model->model.digest));
  }
}

TEST_F(OllamaStoreTest, AbsentLayersAreEmpty) {
  add_manifest("hf.co/x/Y/Q4_K_M", manifest({add_blob("model", "w"), add_blob("prompt", "old template")}));
  const auto model = store().resolve("hf.co/x/Y:Q4_K_M");
  ASSERT_OK(model);
  EXPECT_FALSE(model->projector || model->draft);
  EXPECT_TRUE(model->adapters.empty() && model->params.empty() && model->renderer.empty());
  EXPECT_EQ(model->chat_template, "old template");
}

TEST_F(OllamaStoreTest, TheTagDefaultsToLatest) {
  add_manifest("registry.ollama.ai/library/gemma4/latest", manifest({add_blob("model", "latest weights")}));
  const auto model = store().resolve("gemma4");
  ASSERT_OK(model);
  EXPECT_EQ(model->name, "gemma4:latest");
}

TEST_F(OllamaStoreTest, ListsNamesAsPeopleTypeThem) {
  const json any = manifest({add_blob("model", "w")});
  for (const char* path :
       {"registry.ollama.ai/library/gemma4/e2b", "registry.ollama.ai/library/gemma4/latest",
        "registry.ollama.ai/someone/tuned/v1", "hf.co/x/y/Q4_K_M",
        "registry.ollama.ai/library/gemma4/.DS_Store", "registry.ollama.ai/.DS_Store",
        "registry.ollama.ai/library/gemma4/deep/er", "registry.ollama.ai/library/file"}) {
    add_manifest(path, any);
  }
  const auto names = store().list();
  ASSERT_OK(names);
  EXPECT_EQ(*names, (std::vector<std::string>{"gemma4:e2b", "gemma4:latest", "hf.co/x/y:Q4_K_M",
                                              "someone/tuned:v1"}));
  for (const std::string& name : *names) EXPECT_TRUE(store().resolve(name)) << name;
}

TEST_F(OllamaStoreTest, AMissingStoreIsNotFound) {
  const auto nowhere = OllamaStore::at(folder_.path() + "/nowhere");
  const auto names = nowhere.list();
  ASSERT_FALSE(names);
  EXPECT_EQ(names.error().kind, ErrorKind::kNotFound);
  EXPECT_TRUE(names.error().message.contains(folder_.path() + "/nowhere"));
  expect_error(nowhere.resolve("gemma4"), ErrorKind::kNotFound, "/nowhere");
}

TEST_F(OllamaStoreTest, AMissingManifestNamesThePathAndTheStore) {
  add_manifest("registry.ollama.ai/library/gemma4/e2b", manifest({add_blob("model", "w")}));
  const auto model = store().resolve("gemma4:e4b");
  expect_error(model, ErrorKind::kNotFound,
               folder_.path() + "/manifests/registry.ollama.ai/library/gemma4/e4b");
  expect_error(model, ErrorKind::kNotFound, "the Ollama store " + folder_.path() + ":");
}

TEST_F(OllamaStoreTest, NamesThatClimbOutAreRefusedBeforeAnyFileIsRead) {
  folder_.write("secret", manifest({add_blob("model", "w")}).dump());
  for (const char* name : {"../../secret", "x/../../secret", "gemma4:../../../../secret", "/secret"}) {
    expect_error(store().resolve(name), ErrorKind::kInvalid, "is not a model name");
  }
}

TEST_F(OllamaStoreTest, MissingAndTruncatedBlobs) {
  json layer = add_blob("model", "the weights");
  add_manifest("registry.ollama.ai/library/x/latest", manifest({layer}));
  const std::string path = folder_.path() + "/blobs/sha256-" + digits_of("the weights");
  folder_.write("blobs/sha256-" + digits_of("the weights"), "the wei");
  expect_error(store().resolve("x"), ErrorKind::kInvalid, path + " has 7 bytes");
  unlink(path.c_str());
  folder_.write("blobs/sha256-" + digits_of("the weights") + "-partial", "the weights");
  expect_error(store().resolve("x"), ErrorKind::kNotFound, path + " is missing");
  mkdir(path.c_str(), 0700);
  expect_error(store().resolve("x"), ErrorKind::kInvalid, path + " is not a file");
}

TEST_F(OllamaStoreTest, OldBlobNamesAndUpperCaseDigests) {
  add_manifest("registry.ollama.ai/library/old/latest", manifest({add_blob("model", "old", "sha256:")}));
  const auto old = store().resolve("old");
  ASSERT_OK(old);
  EXPECT_TRUE(old->model.path.contains("/blobs/sha256:"));

  json layer = add_blob("model", "upper");
  std::string upper = digits_of("upper");
  for (char& c : upper) c = static_cast<char>(std::toupper(c));
  layer["digest"] = "sha256-" + upper;
  add_manifest("registry.ollama.ai/library/upper/latest", manifest({layer}));
  const auto model = store().resolve("upper");
  ASSERT_OK(model);
  EXPECT_EQ(model->model.digest, "sha256:" + digits_of("upper"));
}

TEST_F(OllamaStoreTest, ModelsWithoutGgufWeightsAreRefused) {
  json cloud = manifest({});
  cloud["config"] = config({{"remote_host", "https://example.com"}, {"remote_model", "gemma4:31b"}});
  expect_error(resolve_manifest(cloud.dump()), ErrorKind::kUnsupported, "is a cloud model");

  json mlx = manifest({add_blob("json", "{}")});
  mlx["config"] = config({{"model_format", "safetensors"}});
  expect_error(resolve_manifest(mlx.dump()), ErrorKind::kUnsupported, "safetensors");
  expect_error(resolve_manifest(manifest({add_blob("tensor", "t0"), add_blob("tensor", "t1")}).dump()),
               ErrorKind::kUnsupported, "safetensors");

  json other = manifest({add_blob("model", "w")});
  other["config"] = config({{"model_format", "onnx"}});
  expect_error(resolve_manifest(other.dump()), ErrorKind::kUnsupported, "'onnx'");
  expect_error(resolve_manifest(manifest({add_blob("license", "l")}).dump()), ErrorKind::kInvalid,
               "no model layer");
}

TEST_F(OllamaStoreTest, HostileDigests) {
  folder_.write("secret", "w");
  const std::string digits = digits_of("w");
  for (const std::string& digest :
       {std::string("../../secret"), "sha256:../../../" + digits.substr(9), "sha256:" + digits.substr(1),
        "sha256:" + digits + "0", "sha256/" + digits, "md5:" + digits, digits,
        "sha256:" + digits.substr(1) + "g", std::string(),
        "sha256:" + digits.substr(1) + std::string(1, '\0'), std::string(1 << 20, 'a')}) {
    json layer = add_blob("model", "w");
    layer["digest"] = digest;
    expect_error(resolve_manifest(manifest({layer}).dump()), ErrorKind::kInvalid,
                 "is not 'sha256:' followed by 64");
    json bad_config = manifest({add_blob("model", "w")});
    bad_config["config"]["digest"] = digest;
    expect_error(resolve_manifest(bad_config.dump()), ErrorKind::kInvalid, "bad digest");
    EXPECT_FALSE(verify_blob(folder_.path() + "/secret", digest));
  }
}

TEST_F(OllamaStoreTest, HostileSizes) {
  const std::string digest = "sha256:" + digits_of("w");
  const std::string before = R"({"config":)" + config().dump() +
                             R"(,"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":")" +
                             digest + "\"";
  add_blob("model", "w");
  for (const char* size :
       {"-1", "1.0", "1e0", "\"1\"", "null", "[1]", "true", "18446744073709551616", "1e400"}) {
    const auto model = resolve_manifest(before + ",\"size\":" + size + "}]}");
    ASSERT_FALSE(model) << size;
    EXPECT_EQ(model.error().kind, ErrorKind::kInvalid);
  }
  expect_error(resolve_manifest(before + "}]}"), ErrorKind::kInvalid, "not a whole number");
  expect_error(resolve_manifest(before + ",\"size\":18446744073709551615}]}"), ErrorKind::kInvalid,
               "has 1 bytes");
  EXPECT_TRUE(resolve_manifest(before + ",\"size\":1}]}"));
}

TEST_F(OllamaStoreTest, HostileShapes) {
  const std::string cfg = R"({"config":)" + config().dump();
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("[]"), std::string("null"), std::string("{}"),
        std::string("{\"config\":1}"), cfg + ",\"layers\":{}}", cfg + ",\"layers\":\"x\"}",
        cfg + ",\"layers\":[1]}", cfg + ",\"layers\":[null]}", cfg + ",\"layers\":[{}]}",
        cfg + ",\"layers\":[{\"mediaType\":7}]}", cfg + "}", cfg + ",\"layers\":null}",
        cfg + ",\"layers\":[{\"digest\":[]}]}", std::string("\xff\xfe{}"),
        std::string("{\"a\":\"\xc3\x28\"}")}) {
    expect_error(resolve_manifest(text), ErrorKind::kInvalid, "");
  }
}

TEST_F(OllamaStoreTest, DeepAndHugeManifests) {
  const std::string half(1 << 20, '[');
  expect_error(resolve_manifest(half), ErrorKind::kInvalid, "nested deeper than 32");
  expect_error(resolve_manifest(half + std::string(1 << 20, ']')), ErrorKind::kInvalid,
               "nested deeper than 32");
  std::string objects = "1";
  for (int i = 0; i < 100; ++i) objects = "{\"config\":" + objects + "}";
  expect_error(resolve_manifest(objects), ErrorKind::kInvalid, "nested deeper than 32");
  expect_error(resolve_manifest(std::string(kMaxManifestBytes + 1, ' ')), ErrorKind::kInvalid,
               "4194305 bytes");
}

TEST_F(OllamaStoreTest, ARepeatedLayerCountsOnceAndTwoDifferentOnesAreRefused) {
  const json one = add_blob("model", "one"), two = add_blob("model", "two"),
             lora = add_blob("adapter", "lora");
  const auto model = resolve_manifest(manifest({one, lora, one, lora}).dump());
  ASSERT_OK(model);
  EXPECT_EQ(model->adapters.size(), 1u);
  expect_error(resolve_manifest(manifest({one, two}).dump()), ErrorKind::kInvalid,
               "2 different layers of the kind 'model'");
  json resized = one;
  resized["size"] = 4;
  expect_error(resolve_manifest(manifest({one, resized}).dump()), ErrorKind::kInvalid, "2 different layers");
  expect_error(
      resolve_manifest(manifest({one, add_blob("projector", "a"), add_blob("projector", "b")}).dump()),
      ErrorKind::kInvalid, "'projector'");
}

TEST_F(OllamaStoreTest, HostileConfigs) {
  for (const std::string& text :
       {std::string("[]"), std::string("nonsense"), std::string("{\"renderer\":{}}"),
        std::string("{\"model_format\":1}"), std::string(100000, '[')}) {
    json bad = manifest({add_blob("model", "w")});
    bad["config"] = add_blob("config", text);
    expect_error(resolve_manifest(bad.dump()), ErrorKind::kInvalid, folder_.path() + "/blobs/sha256-");
  }
  json missing = manifest({add_blob("model", "w")});
  missing["config"]["digest"] = "sha256:" + std::string(64, '0');
  expect_error(resolve_manifest(missing.dump()), ErrorKind::kNotFound, "names as its config");
}

TEST_F(OllamaStoreTest, VerifyCatchesOneFlippedBit) {
  std::string text(3'000'000, '\0');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 31 >> 3);
  const std::string digest = "sha256-" + digits_of(text);
  const std::string path = folder_.write("blob", text);
  EXPECT_TRUE(verify_blob(path, digest));
  for (const std::size_t at : {std::size_t{0}, std::size_t{1 << 20}, text.size() - 1}) {
    std::string flipped = text;
    flipped[at] = static_cast<char>(flipped[at] ^ 4);
    folder_.write("blob", flipped);
    const Status status = verify_blob(path, digest);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().kind, ErrorKind::kInvalid);
    EXPECT_TRUE(status.error().message.contains("is damaged")) << status.error().message;
  }
  const Status gone = verify_blob(path + "x", digest);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().kind, ErrorKind::kNotFound);
}

TEST_F(OllamaStoreTest, VerifyReportsProgressAndCanBeCancelled) {
  const std::string text(2'500'000, 'x');
  const std::string path = folder_.write("blob", text);
  std::vector<u64> seen;
  const auto note = [&](u64 done, u64 total) {
    EXPECT_EQ(total, text.size());
    seen.push_back(done);
    return true;
  };
  ASSERT_TRUE(verify_blob(path, "sha256:" + digits_of(text), note));
  EXPECT_EQ(seen, (std::vector<u64>{0, 1 << 20, 2 << 20, 2'500'000}));
  const Status stopped =
      verify_blob(path, "sha256:" + digits_of(text), [](u64 done, u64) { return done == 0; });
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().kind, ErrorKind::kCancelled);
  EXPECT_TRUE(verify_blob(folder_.write("empty", ""), "sha256:" + digits_of("")));
}

// Sets an environment variable, or removes it, until the end of the test.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    set(value);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  ~Environment() { set(old_ ? old_->c_str() : nullptr); }

 private:
  void set(const char* value) {
    if (value != nullptr)
      setenv(name_, value, 1);
    else
      unsetenv(name_);
  }
  const char* name_;
  std::optional<std::string> old_;
};

TEST_F(OllamaStoreTest, DefaultRoot) {
  const Environment home("HOME", folder_.path().c_str());
  {
    const Environment chosen("OLLAMA_MODELS", "/chosen");
    EXPECT_EQ(OllamaStore::default_root(), "/chosen");
  }
  const Environment unset("OLLAMA_MODELS", nullptr);
  folder_.write(".ollama/models/manifests/x", "");
  EXPECT_EQ(OllamaStore::default_root(), folder_.path() + "/.ollama/models");
  const Environment empty("OLLAMA_MODELS", "");
  EXPECT_EQ(OllamaStore::default_root(), folder_.path() + "/.ollama/models");
}

}  // namespace
}  // namespace bezel
