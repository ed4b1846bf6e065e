// Makes build/fixtures/gemma4-vocab.gguf: the real vocabulary and no tensors, for tests. Gemma 4 has the
// pieces and merges of Gemma 3, whose tokenizer comes as an npm package; only the names of some specials
// differ.
//   make_vocab <tokenizer.json> <out.gguf>
#include <array>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gguf/writer.h"
#include "io/source.h"

namespace bezel {
namespace {

enum : i32 { kNormal = 1, kControl = 3, kUserDefined = 4, kByte = 6 };

struct Special {
  u32 id;
  const char* piece;
  i32 type;  // as llama.cpp's converter gives it
};

constexpr std::array<Special, 24> kSpecials{{
    {0, "<pad>", kControl},
    {1, "<eos>", kControl},
    {2, "<bos>", kControl},
    {3, "<unk>", kControl},
    {4, "<mask>", kControl},
    {46, "<|tool>", kControl},
    {47, "<tool|>", kControl},
    {48, "<|tool_call>", kUserDefined},
    {49, "<tool_call|>", kUserDefined},
    {50, "<|tool_response>", kUserDefined},
    {51, "<tool_response|>", kUserDefined},
    {52, "<|\"|>", kUserDefined},
    {98, "<|think|>", kControl},
    {100, "<|channel>", kUserDefined},
    {101, "<channel|>", kUserDefined},
    {105, "<|turn>", kControl},
    {106, "<turn|>", kControl},
    {255999, "<|image>", kControl},
    {256000, "<|audio>", kControl},
    {258880, "<|image|>", kControl},
    {258881, "<|audio|>", kControl},
    {258882, "<image|>", kControl},
    {258883, "<audio|>", kControl},
    {258884, "<|video|>", kControl},
}};
constexpr u32 kFirstByte = 238;  // <0x00> to <0xFF> follow each other

Result<nlohmann::json> read_json(const std::string& path) {
  auto source = TRY(open_file(path));
  std::vector<std::byte> bytes(source->size());
  TRY(run_now(source->read(0, bytes)));
  const char* text = reinterpret_cast<const char*>(bytes.data());
  auto json = nlohmann::json::parse(text, text + bytes.size(), nullptr, false);
  if (json.is_discarded()) return invalid("{} is not JSON.", path);
  return json;
}

Result<std::vector<std::string>> read_pieces(const nlohmann::json& model) {
  const auto vocab = model.find("vocab");
  if (vocab == model.end() || !vocab->is_object()) return invalid("The tokenizer has no object model.vocab.");
  std::vector<std::string> pieces(vocab->size());
  for (const auto& [piece, id] : vocab->items()) {
    if (!id.is_number_unsigned() || id.get<u64>() >= pieces.size()) {
      return invalid("The id of '{}' is not below the vocabulary's size, {}.", piece, pieces.size());
    }
    pieces[id.get<u64>()] = piece;
  }
  for (const Special& special : kSpecials) {
    if (special.id >= pieces.size()) return invalid("The vocabulary ends before id {}.", special.id);
    pieces[special.id] = special.piece;
  }
  return pieces;
}

Result<std::vector<std::string>> read_merges(const nlohmann::json& model) {
  const auto pairs = model.find("merges");
  if (pairs == model.end() || !pairs->is_array()) return invalid("The tokenizer has no array model.merges.");
  std::vector<std::string> merges;
  for (const auto& pair : *pairs) {
    if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string() || !pair[1].is_string()) {
      return invalid("Entry {} of model.merges is not a pair of strings.", merges.size());
    }
    merges.push_back(pair[0].get<std::string>() + " " + pair[1].get<std::string>());
  }
  return merges;
}

Status make(const std::string& from, const std::string& to) {
  const auto json = TRY(read_json(from));
  const auto model = json.find("model");
  if (model == json.end() || !model->is_object()) return invalid("{} has no object 'model'.", from);
  const auto pieces = TRY(read_pieces(*model));

  std::vector<i32> types(pieces.size(), kNormal);
  for (const Special& special : kSpecials) types[special.id] = special.type;
  for (u32 byte = 0; byte < 256; ++byte) types[kFirstByte + byte] = kByte;

  GgufWriter writer;
  writer.set_string("general.architecture", "gemma4");
  writer.set_string("general.name", "Gemma 4 vocabulary");
  writer.set_string("tokenizer.ggml.model", "gemma4");
  writer.set_strings("tokenizer.ggml.tokens", pieces);
  writer.set_floats("tokenizer.ggml.scores", std::vector<f32>(pieces.size(), -1000.0F));
  writer.set_ints("tokenizer.ggml.token_type", types);
  writer.set_strings("tokenizer.ggml.merges", TRY(read_merges(*model)));
  writer.set_uint("tokenizer.ggml.bos_token_id", 2);
  writer.set_uint("tokenizer.ggml.eos_token_id", 1);
  writer.set_uint("tokenizer.ggml.unknown_token_id", 3);
  writer.set_uint("tokenizer.ggml.padding_token_id", 0);
  writer.set_uint("tokenizer.ggml.mask_token_id", 4);
  writer.set_ints("tokenizer.ggml.suppress_tokens", std::array<i32, 2>{258883, 258882});
  writer.set_bool("tokenizer.ggml.add_bos_token", true);
  writer.set_bool("tokenizer.ggml.add_space_prefix", false);

  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(to).parent_path(), error);
  return write_gguf(to, writer, {});
}

}  // namespace
}  // namespace bezel

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: make_vocab <tokenizer.json> <out.gguf>\n");
    return 2;
  }
  const auto status = bezel::make(argv[1], argv[2]);
  if (!status) std::fprintf(stderr, "make_vocab: %s\n", status.error().message.c_str());
  return status ? 0 : 1;
}
