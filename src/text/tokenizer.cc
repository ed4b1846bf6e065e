#include "text/tokenizer.h"

#include <algorithm>

#include "text/utf8.h"

namespace bezel {
namespace {

// Gemma 4's specials, known by their text: files type them as control, user-defined or even normal.
constexpr std::array<std::string_view, 24> kSpecials{"<pad>",
                                                     "<eos>",
                                                     "<bos>",
                                                     "<unk>",
                                                     "<mask>",
                                                     "<|tool>",
                                                     "<tool|>",
                                                     "<|tool_call>",
                                                     "<tool_call|>",
                                                     "<|tool_response>",
                                                     "<tool_response|>",
                                                     "<|\"|>",
                                                     "<|think|>",
                                                     "<|channel>",
                                                     "<channel|>",
                                                     "<|turn>",
                                                     "<turn|>",
                                                     "<|image>",
                                                     "<image|>",
                                                     "<|audio>",
                                                     "<audio|>",
                                                     "<|image|>",
                                                     "<|audio|>",
                                                     "<|video|>"};
constexpr std::array<std::string_view, 3> kEnds{"<eos>", "<turn|>", "<|tool_response>"};
constexpr std::string_view kSpace = "\u2581";

constexpr u8 kControlType = 3;
constexpr u8 kUserDefinedType = 4;

// Symbols that are no piece, as Bpe knows them: a code point, or a byte that is not UTF-8.
constexpr u32 kStrayByte = u32{1} << 30;

// A run of characters without a line break is normally a paragraph. This bounds the memory for one that is
// not; at the cut two tokens may stand where one would.
constexpr u32 kMaxRun = u32{1} << 24;

std::optional<u32> hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return std::nullopt;
}

// "<0xNN>" -> the byte. By its text: some files type these pieces as normal.
std::optional<u8> byte_of(std::string_view piece) {
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece[5] != '>') return std::nullopt;
  const auto high = hex_digit(piece[3]);
  const auto low = hex_digit(piece[4]);
  if (!high || !low) return std::nullopt;
  return static_cast<u8>(*high * 16 + *low);
}

}  // namespace

Result<Tokenizer> Tokenizer::build(const Vocabulary& vocabulary) {
  if (!vocabulary.types.empty() && vocabulary.types.size() < vocabulary.pieces.size()) {
    return invalid("The vocabulary has {} tokens but types for {} only.", vocabulary.pieces.size(),
                   vocabulary.types.size());
  }
  Tokenizer result;
  result.pieces_ = TRY(PieceTable::build(vocabulary.pieces));
  result.bos_ = result.pieces_.find("<bos>");
  if (result.bos_ == kNoToken) {
    return invalid("The vocabulary of {} tokens has no token \"<bos>\".", vocabulary.pieces.size());
  }
  result.unknown_ = result.pieces_.find("<unk>");
  std::ranges::transform(kEnds, result.ends_.begin(),
                         [&](std::string_view end) { return result.pieces_.find(end); });
  result.classify(vocabulary.types);
  result.add_merges(vocabulary.merges);
  for (const i64 id : vocabulary.suppressed) {
    if (id >= 0 && id < i64{result.size()}) result.suppressed_.push_back(static_cast<u32>(id));
  }
  return result;
}

void Tokenizer::classify(const std::vector<u8>& types) {
  bytes_.fill(kNoToken);
  kinds_.assign(size(), Kind::kText);
  for (u32 id = 0; id < size(); ++id) {
    const u8 type = types.empty() ? u8{0} : types[id];
    if (const auto byte = byte_of(pieces_[id])) {
      kinds_[id] = Kind::kByte;
      if (bytes_[*byte] == kNoToken) bytes_[*byte] = id;
    } else if (type == kControlType) {
      kinds_[id] = Kind::kSpecial;
      matcher_.add(pieces_[id], id);
    } else if (type == kUserDefinedType) {
      // Text on the screen, but one token, and that only with kParse: all that Gemma 4's files type so are
      // markup of templates (and among kSpecials), which must not come from what people write.
      matcher_.add(pieces_[id], id);
    }
  }
  for (const auto special : kSpecials) {
    const u32 id = pieces_.find(special);
    if (id == kNoToken) continue;
    kinds_[id] = Kind::kSpecial;
    matcher_.add(special, id);
  }
  matcher_.prepare();
}

void Tokenizer::add_merges(const std::vector<std::string_view>& merges) {
  merges_ = MergeTable(merges.size());
  std::string joined;
  u32 product = kNoToken;
  for (u32 rank = 0; rank < merges.size(); ++rank) {
    const std::string_view merge = merges[rank];
    const size_t space = merge.find(' ', 1);
    if (space == std::string_view::npos) continue;
    const std::string_view left_text = merge.substr(0, space);
    const std::string_view right_text = merge.substr(space + 1);
    joined.assign(left_text).append(right_text);
    // The ways to split one piece mostly follow each other.
    if (product == kNoToken || pieces_[product] != joined) product = pieces_.find(joined);
    // Text that people write must not grow into a special, nor into what decodes as another byte.
    if (product == kNoToken || kinds_[product] != Kind::kText) continue;
    const u32 left = pieces_.find(left_text);
    const u32 right = pieces_.find(right_text);
    if (left != kNoToken && right != kNoToken) merges_.add(left, right, {rank, product});
  }
}

std::optional<u32> Tokenizer::find(std::string_view piece) const {
  const u32 id = pieces_.find(piece);
  return id == kNoToken ? std::nullopt : std::optional(id);
}

bool Tokenizer::is_end(u32 id) const { return id < size() && std::ranges::contains(ends_, id); }

void Tokenizer::encode(std::string_view text, Specials specials, std::vector<u32>& out) const {
  Bpe bpe(merges_);
  size_t at = 0;
  if (specials == Specials::kParse) {
    for (auto match = matcher_.find(text, 0); match.id != kNoToken; match = matcher_.find(text, at)) {
      encode_plain(text.substr(at, match.at - at), bpe, out);
      out.push_back(match.id);
      at = match.at + match.length;
    }
  }
  encode_plain(text.substr(at), bpe, out);
}

void Tokenizer::encode_plain(std::string_view text, Bpe& bpe, std::vector<u32>& out) const {
  bool newlines = false;
  while (!text.empty()) {
    // No piece mixes line breaks with other characters: runs of either kind are merged on their own.
    if ((text[0] == '\n') != newlines || bpe.pending() == kMaxRun) {
      finish_run(bpe, out);
      newlines = text[0] == '\n';
    }
    u32 length = 1;
    bpe.push(symbol_of(text, length));
    text.remove_prefix(length);
  }
  finish_run(bpe, out);
}

// The symbol of the first character of `text`, and how many bytes it takes.
u32 Tokenizer::symbol_of(std::string_view text, u32& length) const {
  const Utf8Char c = decode_utf8(text);
  if (c.state != Utf8Char::State::kValid) {
    length = 1;
    return Bpe::kForeign | kStrayByte | static_cast<u8>(text[0]);
  }
  length = c.length;
  const bool space = c.code_point == U' ';
  const u32 id = pieces_.find(space ? kSpace : text.substr(0, length));
  if (id != kNoToken && kinds_[id] == Kind::kText) return id;
  return Bpe::kForeign | (space ? U'\u2581' : c.code_point);
}

void Tokenizer::finish_run(Bpe& bpe, std::vector<u32>& out) const {
  const size_t first = out.size();
  bpe.finish(out);
  const auto foreign = [](u32 symbol) { return symbol >= Bpe::kForeign; };
  if (std::none_of(out.begin() + static_cast<std::ptrdiff_t>(first), out.end(), foreign)) return;
  const std::vector<u32> symbols(out.begin() + static_cast<std::ptrdiff_t>(first), out.end());
  out.resize(first);
  for (const u32 symbol : symbols) {
    if (foreign(symbol)) {
      emit_foreign(symbol, out);
    } else {
      out.push_back(symbol);
    }
  }
}

void Tokenizer::emit_foreign(u32 symbol, std::vector<u32>& out) const {
  symbol &= ~Bpe::kForeign;
  std::string bytes;
  if ((symbol & kStrayByte) != 0) {
    bytes.push_back(static_cast<char>(symbol & 0xFF));
  } else {
    append_utf8(symbol, bytes);
  }
  const auto id_of = [&](char byte) { return bytes_[static_cast<u8>(byte)]; };
  if (std::ranges::contains(bytes, kNoToken, id_of)) {
    if (unknown_ != kNoToken) out.push_back(unknown_);
    return;
  }
  for (const char byte : bytes) out.push_back(id_of(byte));
}

void Tokenizer::decode(u32 id, std::string& out) const {
  if (id >= size() || kinds_[id] == Kind::kSpecial) return;
  std::string_view rest = pieces_[id];
  if (kinds_[id] == Kind::kByte) {
    out.push_back(static_cast<char>(*byte_of(rest)));
    return;
  }
  for (size_t at = rest.find(kSpace); at != std::string_view::npos; at = rest.find(kSpace)) {
    out.append(rest.substr(0, at)).push_back(' ');
    rest.remove_prefix(at + kSpace.size());
  }
  out.append(rest);
}

}  // namespace bezel
