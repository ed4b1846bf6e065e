// A session's tokens, keys and values as bytes. Numbers are little-endian.
//
//   u8[8]   "BEZELKV\n"
//   u32     version, 2
//   u8[32]  the model: SHA-256 of its header and its rotary frequencies
//   u32     how keys and values are stored: KvType
//   u32     the context it was saved from, for people who look at the file
//   u32     tokens: n
//   u32     the first position of sliding layers that is here: f
//   u32     rings: r
//   u32     runs of soft tokens: s
//   u32[r]  columns of each ring
//   u32[n]  the tokens
//   for each run of soft tokens: u32 first position, u32 count: c, u32 whether it is a picture, u8[32] its
//   key,
//           f32[c * width] its embeddings, in case they have to be fed again
//   for each ring its keys, then its values: the rows of positions f (sliding) or 0 (global) to n - 1
//   u8[32]  SHA-256 of everything before
#include <algorithm>
#include <array>
#include <cstring>

#include "io/sha256.h"
#include "model/text_graph.h"
#include "run/session.h"

namespace bezel {
namespace {

constexpr std::string_view kMagic = "BEZELKV\n";
constexpr u32 kVersion = 2;
constexpr u64 kChunk = 4 << 20;

using Digest = std::array<u8, 32>;

struct Header {
  std::array<char, 8> magic{};
  u32 version = kVersion;
  Digest model{};
  KvType kv_type = {};
  u32 context = 0, tokens = 0, first = 0, rings = 0, soft_runs = 0;
};
static_assert(sizeof(Header) == 68);  // no gaps: it is written as it lies in memory

struct SoftHeader {
  u32 first = 0, count = 0, picture = 0;
  Digest key{};
};
static_assert(sizeof(SoftHeader) == 44);

// Two models are the same when their headers are, and when both compute the same angles.
Digest fingerprint(const TextModel& model) {
  Sha256 hash;
  hash.update(std::as_bytes(std::span(model.identity)));
  for (const auto& table : model.frequencies) hash.update(std::as_bytes(std::span(table)));
  return hash.finish();
}

// The runs of slots that hold positions [first, end) of a ring, in order, none larger than a chunk. Positions
// that share a slot come one after the other, so that the later one stays.
struct Run {
  u32 state = 0, slot = 0;
  std::size_t bytes = 0;
};
std::vector<Run> runs_of(u32 state, const KvRing& ring, u64 row_bytes, u32 first, u32 end) {
  std::vector<Run> runs;
  const u64 rows = std::max<u64>(1, kChunk / row_bytes);
  for (u32 p = first; p < end;) {
    const u32 slot = p % ring.slots;
    const u32 count = static_cast<u32>(std::min<u64>({rows, end - p, ring.slots - slot}));
    runs.push_back({state, slot, static_cast<std::size_t>(count * row_bytes)});
    p += count;
  }
  return runs;
}

std::vector<Run> all_runs(const TextConfig& config, const KvCache& cache, u32 first, u32 tokens) {
  std::vector<Run> runs;
  for (u32 state = 0; state < 2 * cache.rings().size(); ++state) {
    const KvRing& ring = cache.rings()[state / 2];
    const u64 row_bytes = kv_bytes(cache.type(), ring.cols);
    const u32 from = config.layers[state / 2].sliding ? first : 0;
    std::ranges::copy(runs_of(state, ring, row_bytes, from, tokens), std::back_inserter(runs));
  }
  return runs;
}

u32 shortest(const std::vector<KvRing>& rings) { return std::ranges::min(rings, {}, &KvRing::slots).slots; }

// What a token at `position` sees begins here in sliding layers.
u32 first_seen(const TextConfig& config, u32 position) {
  return position >= config.window ? position - config.window + 1 : 0;
}

// Reads on from where it stopped and keeps the checksum.
class Reader {
 public:
  explicit Reader(Source& source) : source_(source) {}

  Task<Status> read(MutableBytes out) {
    CO_TRY(co_await source_.read(at_, out));
    at_ += out.size();
    hash_.update(out);
    co_return Status{};
  }
  // Whether `count` more bytes and a checksum are there.
  bool has(u64 count) const {
    return at_ <= source_.size() && count + sizeof(Digest) <= source_.size() - at_;
  }
  u64 at() const { return at_; }
  Digest digest() { return hash_.finish(); }

 private:
  Source& source_;
  Sha256 hash_;
  u64 at_ = 0;
};

Status check_header(const Header& header, const std::string& name, const TextModel& model,
                    const KvCache& cache) {
  if (std::memcmp(header.magic.data(), kMagic.data(), kMagic.size()) != 0)
    return invalid("{} is not a saved session.", name);
  if (header.version != kVersion) {
    return fail(ErrorKind::kUnsupported,
                "{} is a saved session of version {}; this program reads version {}.", name, header.version,
                kVersion);
  }
  if (header.model != fingerprint(model)) return invalid("{} was saved from another model.", name);
  if (header.kv_type != cache.type()) {
    return invalid("{} holds keys and values as {}, but this session keeps them as {}.", name,
                   kv_name(header.kv_type), kv_name(cache.type()));
  }
  if (header.tokens > cache.context()) {
    return invalid("{} holds {} tokens, but the context of this session is {}.", name, header.tokens,
                   cache.context());
  }
  if (header.first > first_seen(model.config, header.tokens)) {
    return invalid("{} begins at position {}, but the next token sees those from {} on.", name, header.first,
                   first_seen(model.config, header.tokens));
  }
  if (header.rings != cache.rings().size()) {
    return invalid("{} has {} rings of keys and values, but this model has {}.", name, header.rings,
                   cache.rings().size());
  }
  return {};
}

// The tokens and the runs of soft ones among them.
Task<Result<Prompt>> read_prompt(Reader& reader, const Header& header, const std::string& name,
                                 const TextConfig& config) {
  Prompt prompt;
  prompt.ids.resize(header.tokens);
  CO_TRY(co_await reader.read(std::as_writable_bytes(std::span(prompt.ids))));
  for (const u32 id : prompt.ids) {
    if (id >= config.vocab)
      co_return invalid("{} contains token {}, outside the vocabulary of {} tokens.", name, id, config.vocab);
  }
  u32 end = 0;
  for (u32 i = 0; i < header.soft_runs; ++i) {
    SoftHeader run;
    if (!reader.has(sizeof(run))) co_return invalid("{} ends within its soft tokens.", name);
    CO_TRY(co_await reader.read(std::as_writable_bytes(std::span(&run, 1))));
    if (run.first < end || run.count == 0 || run.count > header.tokens - run.first ||
        run.first > header.tokens) {
      co_return invalid("{} has {} soft tokens at position {}, which do not fit its {} tokens.", name,
                        run.count, run.first, header.tokens);
    }
    end = run.first + run.count;
    const u64 numbers = u64{run.count} * config.width;
    if (!reader.has(numbers * sizeof(f32))) co_return invalid("{} ends within its soft tokens.", name);
    auto soft = std::make_shared<SoftTokens>();
    soft->count = run.count;
    soft->picture = run.picture != 0;
    soft->key = run.key;
    soft->rows.resize(static_cast<std::size_t>(numbers));
    CO_TRY(co_await reader.read(std::as_writable_bytes(std::span(soft->rows))));
    prompt.soft.push_back({run.first, std::move(soft)});
  }
  co_return prompt;
}

}  // namespace

Task<Status> Session::save(const ByteSink& sink) const {
  const TextModel& model = backend_->model();
  const auto& rings = cache_->rings();
  if (!cache_->holds(position(), written_))
    co_return invalid("The session was stopped within a prompt; it can be saved after the next one.");
  Header header;
  std::ranges::copy(kMagic, header.magic.begin());
  header.model = fingerprint(model);
  header.kv_type = cache_->type();
  header.context = context();
  header.tokens = position();
  // All that the rings still have, so that going back is as cheap afterwards as it is now.
  header.first = written_ - std::min(written_, shortest(rings));
  header.rings = static_cast<u32>(rings.size());
  header.soft_runs = static_cast<u32>(held_.soft.size());

  Sha256 hash;
  const auto put = [&](Bytes bytes) {
    hash.update(bytes);
    return sink(bytes);
  };
  CO_TRY(put(std::as_bytes(std::span(&header, 1))));
  for (const KvRing& ring : rings) CO_TRY(put(std::as_bytes(std::span(&ring.cols, 1))));
  CO_TRY(put(std::as_bytes(std::span(held_.ids))));
  for (const SoftRun& run : held_.soft) {
    const SoftHeader soft{run.first, run.tokens->count, run.tokens->picture, run.tokens->key};
    CO_TRY(put(std::as_bytes(std::span(&soft, 1))));
    CO_TRY(put(std::as_bytes(std::span(run.tokens->rows))));
  }
  std::vector<std::byte> chunk;
  for (const Run& run : all_runs(model.config, *cache_, header.first, header.tokens)) {
    chunk.resize(run.bytes);
    CO_TRY(co_await cache_->read(run.state, run.slot, chunk));
    CO_TRY(put(chunk));
  }
  const Digest digest = hash.finish();
  co_return sink(std::as_bytes(std::span(digest)));
}

Task<Status> Session::restore(Source& source) {
  const TextModel& model = backend_->model();
  const std::string& name = source.name();
  Reader reader(source);
  Header header;
  if (!reader.has(sizeof(header)))
    co_return invalid("{} is not a saved session: it has only {} bytes.", name, source.size());
  CO_TRY(co_await reader.read(std::as_writable_bytes(std::span(&header, 1))));
  CO_TRY(check_header(header, name, model, *cache_));

  const auto runs = all_runs(model.config, *cache_, header.first, header.tokens);
  u64 states = 0;
  for (const Run& run : runs) states += run.bytes;
  const u64 least = (u64{header.rings} + header.tokens) * sizeof(u32) + states;
  if (!reader.has(least)) {
    co_return invalid("{} has {} bytes, but a session of {} tokens takes at least {}.", name, source.size(),
                      header.tokens, reader.at() + least + sizeof(Digest));
  }
  for (const KvRing& ring : cache_->rings()) {
    u32 cols = 0;
    CO_TRY(co_await reader.read(std::as_writable_bytes(std::span(&cols, 1))));
    if (cols != ring.cols) {
      co_return invalid("{} has a ring of {} columns where this model has {}.", name, cols, ring.cols);
    }
  }
  Prompt held = CO_TRY(co_await read_prompt(reader, header, name, model.config));
  if (states + sizeof(Digest) != source.size() - reader.at()) {
    co_return invalid("{} has {} bytes, but a session of {} tokens takes {}.", name, source.size(),
                      header.tokens, reader.at() + states + sizeof(Digest));
  }

  // From here on the rings change: until all is checked, nothing in them counts.
  held_ = {};
  last_ = {};
  ahead_ = {};
  written_ = 0;
  std::vector<std::byte> chunk;
  for (const Run& run : runs) {
    chunk.resize(run.bytes);
    CO_TRY(co_await reader.read(chunk));
    cache_->write(run.state, run.slot, chunk);
  }
  const Digest digest = reader.digest();
  Digest stored{};
  CO_TRY(co_await source.read(reader.at(), std::as_writable_bytes(std::span(stored))));
  if (digest != stored) co_return invalid("{} is damaged: its checksum is wrong.", name);
  held_ = std::move(held);
  // As if so much had been written that just the positions before `first` are gone.
  const u64 written = header.first == 0 ? 0 : u64{header.first} + shortest(cache_->rings());
  written_ = static_cast<u32>(std::clamp<u64>(written, position(), ~u32{0}));
  co_return Status{};
}

}  // namespace bezel
