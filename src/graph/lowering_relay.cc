// Products that follow each other as one dispatch, see relay.wgsl.
#include <algorithm>
#include <array>
#include <bit>
#include <map>

#include "base/check.h"
#include "base/format_text.h"
#include "graph/lowering.h"
#include "kernels/lib_gelu.wgsl.h"
#include "kernels/lib_numbers.wgsl.h"
#include "kernels/lib_parts.wgsl.h"
#include "kernels/lib_relay_leg.wgsl.h"
#include "kernels/relay.wgsl.h"

namespace bezel {
namespace {

using wgsl::relay::Leg;

// Bits of Leg::flags beside those of VectorNorms, as in relay.wgsl.
enum Flag : u32 {
  kXMailed = 8,
  kAddedMailed = 16,
  kMailSum = 32,
  kMailNext = 64,
  kMailOut = 128,
  kPair = 256,
  kOther = 512,
};

constexpr std::size_t kMostLegs = std::tuple_size_v<decltype(wgsl::relay::Params::legs)>;
constexpr u32 kUnit = 64;       // numbers that a thread holds
constexpr u32 kLanes = 4;       // threads that share a row are a multiple of
constexpr u32 kTogether = 16;   // rows of which a thread keeps a four
constexpr u32 kMostRows = 512;  // MOST_ROWS: of a workgroup
constexpr u32 kMailRun = 512;   // numbers whose order in the mail is their own

u32 round_up(u32 n, u32 to) { return (n + to - 1) / to * to; }

// Bytes of workgroup memory that a relay with so many units takes.
u32 memory_of(u32 units, u32 threads) {
  return 12 * units * 16 + 2 * units * 16 + kMostRows * 4 + groups(threads, 16) * 64;
}

// The text with a suffix to every name that it declares, so that another one of its kind can stand beside it.
std::string renamed(std::string_view text, std::string_view suffix) {
  const auto in_name = [](char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  };
  // Calls `word` with every name or number, and `other` with every character between them.
  const auto words = [&](auto&& word, auto&& other) {
    for (std::size_t at = 0; at < text.size();) {
      std::size_t end = at;
      while (end < text.size() && in_name(text[end])) ++end;
      if (end > at) {
        word(at, text.substr(at, end - at));
        at = end;
      } else {
        other(text[at++]);
      }
    }
  };
  std::vector<std::string_view> declared;
  bool next = false;
  words(
      [&](std::size_t at, std::string_view word) {
        if (std::exchange(next, false)) declared.push_back(word);
        const bool begins = at == 0 || text[at - 1] == '\n';
        next = begins && (word == "fn" || word == "const" || word == "struct" || word == "alias");
      },
      [](char) {});
  std::ranges::sort(declared);
  std::string out;
  words(
      [&](std::size_t, std::string_view word) {
        out += word;
        if (std::ranges::binary_search(declared, word)) out += suffix;
      },
      [&](char c) { out += c; });
  return out;
}

}  // namespace

// What a step gives for one of its products: that of a gated one is the gate's.
const Tensor& Lowering::result_of(const Step& step, const op::MatMul& product) const {
  return step.kind == Step::Kind::kGated ? op_at<op::GeluMul>(step.first + step.count - 1).out : product.out;
}

// The buffer with all weights of a step, if it can be a leg.
std::optional<BufferView> Lowering::relay_weights(const Step& step) const {
  const DeviceInfo& info = device_.info();
  const auto products = products_of(step);
  const auto& x = products[0]->x;
  std::vector<const DeviceWeight*> weights;
  for (const auto* product : products) {
    const DeviceWeight& w = weight(product->weight);
    if (!in_one_piece(*product) || !has_digits(w) || product->weight.rows % 4 != 0) return {};
    weights.push_back(&w);
  }
  if (step.kind == Step::Kind::kProducts && side_by_side(step).empty()) return {};
  if (products.size() == 2 && step.kind == Step::Kind::kGated && !same_form(*weights[0], *weights[1]))
    return {};
  const VectorNorms norms = norms_of(step);
  if (norms && (x.cols != relay_cols_ || x.cols > options_.relay.units * kUnit)) return {};
  for (const op::RmsNorm* norm : {norms.norm, norms.next}) {
    if (norm == nullptr) continue;
    if (!norm->weight || weight(norm->weight).tiles.size() != 1) return {};
    weights.push_back(&weight(norm->weight));
  }
  const Buffer& buffer = *weights[0]->tiles[0].buffer;
  const auto elsewhere = [&](const DeviceWeight* w) { return w->tiles[0].buffer->id() != buffer.id(); };
  bool fits = !std::ranges::any_of(weights, elsewhere) && buffer.bytes() <= info.max_binding &&
              x.cols % kUnit == 0 && info.integer_dots;
  const auto in_fours_too = [&](const Tensor& t) { fits = fits && in_fours(t); };
  for (std::size_t i = 0; i < step.count; ++i)
    std::visit([&](const auto& op) { op.tensors(in_fours_too, in_fours_too); }, graph_.ops()[step.first + i]);
  return fits ? std::optional(buffer.view()) : std::nullopt;
}

// Whether a step that follows these can go on with what they give: only a result that is alone goes by mail,
// whole, and only to where a vector is read.
bool Lowering::goes_on(std::span<const Step> before, const Step& step) const {
  std::vector<Tensor> given, alone;
  for (const Step& earlier : before) {
    const auto give = [&](const Tensor& x) { given.push_back(x); };
    for (std::size_t i = 0; i < earlier.count; ++i)
      std::visit([&](const auto& op) { op.tensors([](const Tensor&) {}, give); },
                 graph_.ops()[earlier.first + i]);
    const VectorNorms norms = norms_of(earlier);
    if (norms.sum != nullptr) alone.push_back(norms.sum->out);
    if (norms.keep) alone.push_back(norms.next->out);
    if (earlier.kind != Step::Kind::kProducts) alone.push_back(result_of(earlier, *products_of(earlier)[0]));
  }
  const auto from_before = [&](const Tensor& x) {
    return std::ranges::contains(given, x.buffer, &Tensor::buffer);
  };
  const auto mailed = [&](const Tensor& x) {
    return std::ranges::any_of(alone, [&](const Tensor& y) {
      return x.buffer == y.buffer && x.offset == y.offset && x.cols == y.cols;
    });
  };
  const auto products = products_of(step);
  const VectorNorms norms = norms_of(step);
  std::vector<Tensor> read{norms.source(products[0]->x)};
  if (norms.sum != nullptr) read.push_back(norms.sum->a);
  if (!std::ranges::all_of(read, [&](const Tensor& x) { return !from_before(x) || mailed(x); })) return false;
  return step.kind != Step::Kind::kGated || products.size() == 2 ||
         !from_before(op_at<op::GeluMul>(step.first + step.count - 1).up);
}

// The attention in parts whose result the step multiplies as it is.
const op::Attention* Lowering::merges_before(std::span<const Step> steps, std::size_t at) const {
  if (options_.relay.apart || at == 0 || steps[at].norms > 0 || steps[at - 1].kind != Step::Kind::kAttend)
    return nullptr;
  const Step& before = steps[at - 1];
  const auto& attention = op_at<op::Attention>(before.first + before.count - 1);
  const Tensor& x = products_of(steps[at])[0]->x;
  return attention.out.buffer == x.buffer && attention.out.offset == x.offset &&
                 attention.out.cols == x.cols && in_fours(attention.out) &&
                 parts_of(attention, options_.attention_parts) > 1
             ? &attention
             : nullptr;
}

bool Lowering::merged_by_relay(const op::Attention& op) const {
  return std::ranges::contains(relays_, &op, &Relay::merges);
}

void Lowering::set_merge(wgsl::relay::Params& params, const Relay& relay) const {
  const op::Attention& op = *relay.merges;
  constexpr u32 kMost = 32;  // fours of a workgroup
  params.head_fours = op.head_size / 4, params.merged = op.heads * params.head_fours;
  params.merge_share = std::min({kMost, std::bit_ceil(groups(params.merged, options_.relay.groups)),
                                 std::bit_floor(options_.relay.threads)});
  params.partial = static_cast<u32>(plan_.layout_.partials);
  params.parts = parts_of(op, options_.attention_parts), params.window = op.window;
  params.position = at(op.positions), params.merge_out = at(op.out), params.merge_mail = relay.merge_mail;
}

void Lowering::find_relays(std::span<const Step> steps) {
  RelayOptions& with = options_.relay;
  const DeviceInfo& info = device_.info();
  if (with.groups == 0 || !options_.fuse || !info.subgroups) return;
  // A software adapter makes a fiber of every few threads: there, fewer are much faster.
  constexpr u32 kUnits = 168;
  const u32 suits = info.software ? 64 : 512;
  with.threads = std::min(with.threads > 0 ? with.threads : suits, info.max_invocations);
  with.units = std::min(with.units > 0 ? with.units : kUnits, with.threads) / kLanes * kLanes;
  while (with.units > kLanes && memory_of(with.units, with.threads) > info.max_workgroup_memory)
    with.units -= kLanes;
  // Where parts of attention are joined, `words` has a place for each thread's sum, and for its weight.
  if (12 * with.units < 2 * with.threads) return;
  const auto runs = relay_runs(graph_, steps);
  for (const auto& [first, end] : runs) {
    for (std::size_t i = first; i < end; ++i)
      if (relay_cols_ == 0 && steps[i].norms > 0) relay_cols_ = normed_by(steps[i]).cols;
  }
  for (const auto& [first, end] : runs) {
    for (std::size_t at = first, count = 1; at < end; at += count, count = 1) {
      const auto buffer = relay_weights(steps[at]);
      if (!buffer) continue;
      const auto with_it = [&](const Step& step) {
        const auto other = relay_weights(step);
        return other && other->buffer == buffer->buffer && goes_on(steps.subspan(at, count), step);
      };
      while (at + count < end && count < kMostLegs && with_it(steps[at + count])) ++count;
      if (count > 1) relays_.push_back({at, count, *buffer, merges_before(steps, at)});
    }
  }
  if (relays_.size() < 2) relays_.clear();  // each clears the mail of another
  for (const Relay& relay : relays_) {
    for (const Step& step : steps.subspan(relay.first, relay.count)) {
      const DeviceWeight& w = weight(products_of(step)[0]->weight);
      if (form_of(w) == forms_.size()) forms_.push_back(&w);
    }
  }
}

u32 Lowering::form_of(const DeviceWeight& w) const {
  const auto found = std::ranges::find(forms_, w.type, &DeviceWeight::type);
  return static_cast<u32>(found - forms_.begin());
}

void Lowering::shape_leg(Leg& leg, u32 rows, u32 cols, u32 row_bytes, bool pair) const {
  const RelayOptions& with = options_.relay;
  const u32 passes = groups(cols / kUnit, with.units);
  leg.units = cols / kUnit;
  leg.lanes = round_up(groups(leg.units, passes), kLanes);
  leg.rows = rows;
  leg.share = std::min(round_up(groups(rows, with.groups), 4), pair ? kMostRows / 2 : kMostRows);
  const u32 room = 12 * with.units / leg.lanes;  // fours of all lanes that `words` has
  leg.teams = std::min({with.threads / leg.lanes, room, leg.share});
  const u32 own = groups(leg.share, leg.teams);
  leg.each = pair ? 2 * own : own == 1 ? 1 : round_up(own, 2);
  leg.batch = room / leg.teams * kTogether;
  leg.row_bytes = row_bytes;
  leg.step = (pair ? 1 : 2) * leg.teams * row_bytes;
  if (!pair) leg.apart = leg.each == 1 ? 0 : leg.teams * row_bytes;
  CHECK(leg.teams > 0 && leg.batch > 0);
}

// All but its mail.
Leg Lowering::leg_of(const Step& step, u64 weights_begin) const {
  const auto place = [&](const Weight& w) { return weight(w).tiles[0].offset - weights_begin; };
  auto products = products_of(step);
  const bool gated = step.kind == Step::Kind::kGated, pair = gated && products.size() == 2;
  if (!gated)
    std::ranges::sort(products, {}, [&](const op::MatMul* product) { return place(product->weight); });
  const op::MatMul& first = *products[0];
  const DeviceWeight& w = weight(first.weight);
  const auto scale = [&](std::size_t i) { return products[i]->scale * scalar(products[i]->scale_by); };
  Leg leg{};
  leg.form = form_of(w);
  u32 rows = 0;
  for (const auto* product : products) rows += product->weight.rows;
  if (pair) leg.apart = static_cast<u32>(place(products[1]->weight) - place(first.weight));
  shape_leg(leg, pair ? rows / 2 : rows, first.x.cols, w.row_bytes, pair);
  leg.begin = static_cast<u32>(place(first.weight));
  leg.flags = pair ? kPair : gated ? kOther : 0;
  leg.out = at(result_of(step, first)), leg.scale = scale(0), leg.rows_1 = leg.rows_2 = leg.rows;
  if (gated && !pair) leg.other = at(op_at<op::GeluMul>(step.first + step.count - 1).up);
  if (products.size() > 1) {
    leg.scale_2 = scale(1);
    if (!pair) leg.rows_1 = first.weight.rows, leg.out_2 = at(products[1]->out);
  }
  if (products.size() > 2) {
    leg.rows_2 = products[1]->weight.rows;
    leg.scale_3 = scale(2), leg.out_3 = at(products[2]->out);
  }
  const VectorNorms norms = norms_of(step);
  leg.flags |= norms.bits();
  leg.x = at(norms.source(first.x));
  if (norms.sum != nullptr) {
    leg.added = at(norms.sum->a), leg.sum = at(norms.sum->out);
    leg.eps = norms.norm->eps, leg.norm_scale = norms.norm->scale;
    leg.sum_scale = norms.sum->scale * scalar(norms.sum->scale_by);
    leg.norm_weight = static_cast<u32>(place(norms.norm->weight) / 16);
  }
  if (norms.next != nullptr) {
    leg.next = at(norms.next->out);
    leg.next_eps = norms.next->eps, leg.next_scale = norms.next->scale;
    leg.next_weight = static_cast<u32>(place(norms.next->weight) / 16);
  }
  return leg;
}

// What one leg gives and a later one reads goes by mail. A vector's place in the arena is its name: within a
// relay it is nobody else's.
void Lowering::set_legs(std::span<const Step> steps, Relay& relay) {
  for (const Step& step : steps) relay.legs.push_back(leg_of(step, relay.weights.offset));
  std::map<u32, u32> read;  // and when it was last
  for (u32 i = 0; i < relay.legs.size(); ++i) {
    const Leg& leg = relay.legs[i];
    read[leg.x] = i;
    if ((leg.flags & VectorNorms::kAdd) != 0) read[leg.added] = i;
  }
  std::map<u32, u32> posted;
  if (relay.merges != nullptr) {
    posted[at(relay.merges->out)] = relay.merge_mail = relay.mail;
    relay.mail += round_up(relay.merges->out.cols, kMailRun);
  }
  const auto post = [&](u32 i, u32 vector, u32 cols, u32 flag, u32& place) {
    const auto reader = read.find(vector);
    if (reader == read.end() || reader->second <= i) return;
    place = posted[vector] = relay.mail;
    relay.mail += round_up(cols, kMailRun);
    relay.legs[i].flags |= flag;
  };
  for (u32 i = 0; i < relay.legs.size(); ++i) {
    Leg& leg = relay.legs[i];
    if (const auto x = posted.find(leg.x); x != posted.end()) leg.x_mail = x->second, leg.flags |= kXMailed;
    if (const auto added = posted.find(leg.added);
        (leg.flags & VectorNorms::kAdd) != 0 && added != posted.end())
      leg.added_mail = added->second, leg.flags |= kAddedMailed;
    if ((leg.flags & VectorNorms::kAdd) != 0) post(i, leg.sum, relay_cols_, kMailSum, leg.sum_mail);
    if ((leg.flags & VectorNorms::kKeep) != 0) post(i, leg.next, relay_cols_, kMailNext, leg.next_mail);
    if (products_of(steps[i]).size() == 1 || (leg.flags & kPair) != 0)
      post(i, leg.out, leg.rows, kMailOut, leg.out_mail);
  }
}

Status Lowering::make_relays(std::span<const Step> steps) {
  if (relays_.empty()) return {};
  relay_mail_ = kMailRun;
  for (Relay& relay : relays_) {
    set_legs(steps.subspan(relay.first, relay.count), relay);
    relay_mail_ = std::max(relay_mail_, relay.mail);
  }
  // A relay clears the mail of the next one, the last one that of the first: neighbours have different parts.
  for (std::size_t i = 0; i < relays_.size(); ++i) {
    Relay& relay = relays_[i];
    const bool odd_one = relays_.size() % 2 == 1 && i + 1 == relays_.size();
    relay.mail = (odd_one ? 2 : static_cast<u32>(i % 2)) * relay_mail_;
    relay.merge_mail += relay.mail;
    for (Leg& leg : relay.legs) {
      for (u32* place : {&leg.x_mail, &leg.added_mail, &leg.sum_mail, &leg.next_mail, &leg.out_mail})
        *place += relay.mail;
    }
  }
  relay_text_ = make_relay_text();
  plan_.mail_ = TRY(device_.make_buffer(u64{3} * relay_mail_ * sizeof(u32), "mail"));
  return {};
}

std::string Lowering::make_relay_text() const {
  const RelayOptions& with = options_.relay;
  std::string text = format_text(
      "enable subgroups;\nconst WG: u32 = {}u;\nconst UNITS: u32 = {}u;\nconst MOST_ROWS: u32 = {}u;\nconst "
      "COLS: u32 = {}u;\n",
      with.threads, with.units, kMostRows, std::max(relay_cols_, kUnit));
  text.append(wgsl::lib_numbers::source)
      .append(digits_common(device_.info()))
      .append(sums_source())
      .append(wgsl::lib_gelu::source)
      .append(wgsl::lib_parts::source);
  std::string cases;
  for (std::size_t i = 0; i < forms_.size(); ++i) {
    text += renamed(digits_of(*forms_[i], true).append(wgsl::lib_relay_leg::source), format_text("_{}", i));
    const std::string label = i + 1 < forms_.size() ? format_text("case {}u", i) : std::string("default");
    cases += format_text("    {}: {{ multiply_rows_{}(n, first, thread); }}\n", label, i);
  }
  return text
      .append(format_text(
          "fn run_leg(n: u32, first: u32, thread: u32) {{\n  switch (p.legs[n].form) {{\n{}  }}\n}}\n",
          cases))
      .append(wgsl::relay::source);
}

Status Lowering::lower_relay(std::size_t index) {
  constexpr u32 kPatience = 1 << 18;  // a good tenth of a second
  const Relay &relay = relays_[index], &next = relays_[(index + 1) % relays_.size()];
  const u32 count = static_cast<u32>(relay.legs.size()), at_once = options_.relay.apart ? 1 : count;
  for (u32 i = 0; i < count; i += at_once) {
    wgsl::relay::Params params{};
    params.count = at_once, params.patience = kPatience;
    params.clear = next.mail, params.clear_count = i == 0 ? relay_mail_ : 0;
    if (i == 0 && relay.merges != nullptr) set_merge(params, relay);
    std::ranges::copy(std::span(relay.legs).subspan(i, at_once), params.legs.begin());
    TRY(add("relay", relay_text_, params, wgsl::relay::Io{arena(), relay.weights, plan_.mail_.view()},
            {options_.relay.groups}));
  }
  return {};
}

Result<Program> Lowering::meeting() {
  constexpr u32 kAsked = 1024;      // workgroups, more than any GPU runs at a time
  constexpr u32 kPatience = 20000;  // a while: milliseconds
  const auto steps = fuse(graph_);
  find_relays(steps);
  if (relays_.empty()) return Program();
  TRY(make_relays(steps));
  wgsl::relay::Params params{};
  params.patience = kPatience;
  TRY(add("relay", relay_text_, params, wgsl::relay::Io{arena(), relays_[0].weights, plan_.mail_.view()},
          {kAsked}));
  return device_.make_program(dispatches_);
}

}  // namespace bezel
