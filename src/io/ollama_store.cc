#include "io/ollama_store.h"

#include <algorithm>
#include <cstdlib>

#include "base/format_text.h"
#include "io/ascii.h"
#include "io/files.h"
#include "io/ollama_manifest.h"
#include "io/sha256.h"
#include "io/source.h"

namespace bezel {
namespace {

constexpr u64 kMaxTextBytes = 4 << 20;  // of a config, template, system text, ...
constexpr std::size_t kVerifyChunk = 1 << 20;
constexpr const char* kServiceRoot = "/usr/share/ollama/.ollama/models";

// The blobs of one model, found below one store's root.
class BlobFinder {
 public:
  BlobFinder(const std::string& root, const OllamaManifest& manifest) : root_(root), manifest_(manifest) {}

  Result<OllamaBlob> find(const OllamaLayer& layer) const {
    const std::string lower = lower_case(layer.digits);
    const std::string expected = root_ + "/blobs/sha256-" + lower;
    // Ollama names a blob as its manifest spells the digest; very old stores have ':' in the name.
    for (const std::string& path :
         {expected, root_ + "/blobs/sha256:" + lower, root_ + "/blobs/sha256-" + layer.digits,
          root_ + "/blobs/sha256:" + layer.digits}) {
      const auto size = file_size(path);
      if (!size && size.error().kind == ErrorKind::kNotFound) continue;
      if (!size) return std::unexpected(size.error());
      if (*size != layer.bytes) {
        return invalid("{} has {} bytes, but {} states {}: the download is incomplete or damaged.", path,
                       *size, manifest_.name, layer.bytes);
      }
      return OllamaBlob{path, *size, "sha256:" + lower};
    }
    return fail(ErrorKind::kNotFound, "{} is missing, which {} names as its {}.", expected, manifest_.name,
                layer.kind);
  }

  Result<std::optional<OllamaBlob>> find(std::string_view kind) const {
    const auto layer = TRY(manifest_.only(kind));
    if (!layer) return std::optional<OllamaBlob>();
    return TRY(find(*layer));
  }

  // Empty without such a layer.
  Result<std::string> text(std::string_view kind) const {
    const auto blob = TRY(find(kind));
    if (!blob) return std::string();
    return read_text(blob->path, kMaxTextBytes);
  }

 private:
  const std::string& root_;
  const OllamaManifest& manifest_;
};

Status check_has_weights(const OllamaName& name, const OllamaManifest& manifest, const OllamaConfig& config) {
  const std::string shown = name.display();
  if (!config.remote_host.empty() || !config.remote_model.empty()) {
    return fail(ErrorKind::kUnsupported,
                "{} is a cloud model: it runs at {} and has no weights on this machine.", shown,
                config.remote_host.empty() ? "a remote host" : quote(config.remote_host));
  }
  if (config.format == "safetensors" || manifest.has("tensor")) {
    return fail(
        ErrorKind::kUnsupported,
        "{} consists of safetensors (an MLX build), not of a GGUF file; take a tag without -mlx, -nvfp4 "
        "or -mxfp8.",
        shown);
  }
  if (!config.format.empty() && config.format != "gguf") {
    return fail(ErrorKind::kUnsupported, "{} has the model format {}; only 'gguf' is supported.", shown,
                quote(config.format));
  }
  return {};
}

// Calls `visit` with the name and the path of every entry; a folder that is absent or unreadable has none.
template <class Visit>
void each_entry(const std::string& folder, Visit visit) {
  for (const std::string& entry : list_folder(folder).value_or(std::vector<std::string>())) {
    visit(entry, format_text("{}/{}", folder, entry));
  }
}

}  // namespace

std::string OllamaStore::default_root() {
  const char* chosen = std::getenv("OLLAMA_MODELS");
  if (chosen != nullptr && *chosen != '\0') return chosen;
  std::string service = kServiceRoot;
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == '\0') return service;
  std::string own = std::string(home) + "/.ollama/models";
  return !is_folder(own + "/manifests") && is_folder(service + "/manifests") ? service : own;
}

std::string OllamaStore::manifest_path(const OllamaName& name) const {
  return root_ + "/manifests/" + name.path();
}

Result<OllamaName> OllamaStore::find(std::string_view text) const {
  OllamaName wanted = TRY(OllamaName::parse(text));
  if (is_file(manifest_path(wanted))) return wanted;
  const auto present = names();
  if (!present && present.error().kind != ErrorKind::kNotFound) return std::unexpected(present.error());
  if (present) {
    const auto found = std::ranges::find_if(*present, [&](const auto& name) { return name.same(wanted); });
    if (found != present->end()) return *found;
  }
  return fail(ErrorKind::kNotFound, "Model {} is not in the Ollama store {}: there is no manifest {}.",
              wanted.display(), root_, manifest_path(wanted));
}

Result<OllamaModel> OllamaStore::resolve(std::string_view text) const {
  const OllamaName name = TRY(find(text));
  const std::string path = manifest_path(name);
  const auto manifest = TRY(OllamaManifest::parse(TRY(read_text(path, kMaxManifestBytes)), path));
  const BlobFinder blobs(root_, manifest);
  const OllamaBlob config_blob = TRY(blobs.find(manifest.config));
  const auto config =
      TRY(OllamaConfig::parse(TRY(read_text(config_blob.path, kMaxTextBytes)), config_blob.path));
  TRY(check_has_weights(name, manifest, config));

  auto weights = TRY(blobs.find("model"));
  if (!weights)
    return invalid("Model {} has no weights: {} has no model layer.", name.display(), manifest.name);
  OllamaModel model{.name = name.display(),
                    .model = std::move(*weights),
                    .projector = TRY(blobs.find("projector")),
                    .draft = TRY(blobs.find("draft")),
                    .adapters = {},
                    .family = config.family,
                    .model_type = config.model_type,
                    .file_type = config.file_type,
                    .renderer = config.renderer,
                    .parser = config.parser,
                    .requires_version = config.requires_version,
                    .params = TRY(blobs.text("params")),
                    .messages = TRY(blobs.text("messages")),
                    .system = TRY(blobs.text("system")),
                    .chat_template = TRY(blobs.text(manifest.has("template") ? "template" : "prompt"))};
  for (const OllamaLayer& layer : manifest.layers) {
    if (layer.kind == "adapter") model.adapters.push_back(TRY(blobs.find(layer)));
  }
  return model;
}

Result<std::vector<OllamaName>> OllamaStore::names() const {
  using Text = const std::string&;
  const std::string top = root_ + "/manifests";
  const auto readable = list_folder(top);
  if (!readable) {
    return fail(readable.error().kind, "There is no Ollama store at {}: {}", root_, readable.error().message);
  }
  std::vector<OllamaName> names;
  each_entry(top, [&](Text host, Text host_path) {
    each_entry(host_path, [&](Text space, Text space_path) {
      each_entry(space_path, [&](Text model, Text model_path) {
        each_entry(model_path, [&](Text tag, Text tag_path) {
          // Other programs leave files such as .DS_Store behind.
          auto name = OllamaName::from_parts(host, space, model, tag);
          if (name && is_file(tag_path)) names.push_back(std::move(*name));
        });
      });
    });
  });
  return names;
}

Result<std::vector<std::string>> OllamaStore::list() const {
  std::vector<std::string> shown;
  for (const OllamaName& name : TRY(names())) shown.push_back(name.display());
  std::ranges::sort(shown);
  return shown;
}

Status verify_blob(const std::string& path, std::string_view digest, const VerifyProgress& progress) {
  const std::string expected = lower_case(TRY(digest_digits(digest)));
  auto source = TRY(open_file(path));
  const u64 total = source->size();
  std::vector<std::byte> chunk(static_cast<std::size_t>(std::min<u64>(total, kVerifyChunk)));
  Sha256 sha;
  for (u64 done = 0;;) {
    if (progress && !progress(done, total)) {
      return fail(ErrorKind::kCancelled, "Checking {} was stopped after {} of {} bytes.", path, done, total);
    }
    if (done == total) break;
    const auto piece =
        MutableBytes(chunk).first(static_cast<std::size_t>(std::min<u64>(total - done, chunk.size())));
    TRY(run_now(source->read(done, piece)));
    sha.update(piece);
    done += piece.size();
  }
  const std::string found = to_hex(sha.finish());
  if (found != expected) {
    return invalid("{} is damaged: its SHA-256 is {}, not {}.", path, found, expected);
  }
  return {};
}

}  // namespace bezel
