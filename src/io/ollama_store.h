// Ollama's folder of models: from a name such as "gemma4:e2b" to the files it stands for. Nothing is written
// or fetched.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "io/ollama_name.h"

namespace bezel {

// A content-addressed file that exists and has the size its manifest states. Its digest was not computed:
// that takes a while, see verify_blob().
struct OllamaBlob {
  std::string path;
  u64 bytes = 0;
  std::string digest;  // "sha256:" and 64 lower-case digits
};

struct OllamaModel {
  std::string name;  // as OllamaName::display() writes it
  OllamaBlob model;
  std::optional<OllamaBlob> projector;
  std::optional<OllamaBlob> draft;
  std::vector<OllamaBlob> adapters;

  // From the config; empty where it says nothing.
  std::string family;      // "gemma4"
  std::string model_type;  // "8.0B"
  std::string file_type;   // "Q4_K_M"
  std::string renderer;
  std::string parser;
  std::string requires_version;

  // Texts of their own layers; empty where there is none.
  std::string params;    // JSON: {"temperature":1,"top_k":64}
  std::string messages;  // JSON
  std::string system;
  std::string chat_template;
};

class OllamaStore {
 public:
  static OllamaStore at(std::string root) { return OllamaStore(std::move(root)); }
  // $OLLAMA_MODELS, else ~/.ollama/models, else the Linux service's folder where that alone has models.
  static std::string default_root();

  const std::string& root() const { return root_; }

  // kNotFound when the model or one of its files is not there; kUnsupported for models without GGUF weights.
  Result<OllamaModel> resolve(std::string_view name) const;
  // Names as a person types them, sorted.
  Result<std::vector<std::string>> list() const;

 private:
  explicit OllamaStore(std::string root) : root_(std::move(root)) {}
  std::string manifest_path(const OllamaName& name) const;
  Result<OllamaName> find(std::string_view text) const;
  Result<std::vector<OllamaName>> names() const;

  std::string root_;
};

// Called with the bytes read so far and the file's size, first with 0; false stops with kCancelled.
using VerifyProgress = std::function<bool(u64 done, u64 total)>;

// Reads the whole file and compares its SHA-256 with `digest` ("sha256:..." or "sha256-...").
Status verify_blob(const std::string& path, std::string_view digest, const VerifyProgress& progress = {});

}  // namespace bezel
