#include "model/text_graph.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/check.h"
#include "base/format_text.h"

namespace bezel {
namespace {

class TextGraphBuilder {
 public:
  TextGraphBuilder(const TextModel& model, const std::vector<KvRing>& rings)
      : model_(model), config_(model.config), rings_(rings) {}

  Graph build(PassShape shape) {
    const auto [tokens, outputs, top, soft, chain] = shape;
    CHECK(tokens > 0 && outputs <= tokens && (!chain || (tokens == 1 && outputs == 1 && top > 0)));
    const u32 owned = config_.owned_kv_layers();
    const Tensor ids = g_.input(kTokenIds, tokens, 1);
    positions_ = g_.input(kPositions, tokens, 1);
    last_ = soft && config_.pictures_see_ahead() ? g_.input(kLast, tokens, 1) : positions_;
    for (const bool sliding : {false, true})
      frequencies_[sliding] = g_.add_table(model_.frequencies[sliding]);
    for (u32 i = 0; i < 2 * owned; ++i)
      states_.push_back(g_.state(i, rings_[i / 2].slots, rings_[i / 2].cols));

    Tensor x = g_.embed_rows(ids, model_.token_embd, std::sqrt(static_cast<f32>(config_.width)));  // (T, d)
    if (soft) x = g_.splice(x, g_.input(kSoftRows, tokens, config_.width), g_.input(kIsSoft, tokens, 1));
    if (config_.ple > 0) per_layer_inputs(ids, x);
    for (u32 i = 0; i < config_.layers.size(); ++i) {
      g_.set_name(format_text("hidden.{}", i), x);
      Tensor h = norm(x, model_.layers[i].attn_norm);
      std::optional<KeysValues> own;
      if (config_.owns_kv(i)) own = project_kv(i, h);
      if (i == owned - 1) {
        // No later layer writes K or V: the rest is for the output rows alone.
        if (outputs == 0) {
          write_kv(i, *own);
          return std::move(g_);
        }
        const u32 first = tokens - outputs;
        x = Graph::rows(x, first, outputs);
        h = Graph::rows(h, first, outputs);
        positions_ = Graph::rows(positions_, first, outputs);
        last_ = Graph::rows(last_, first, outputs);
        if (config_.ple > 0) per_layer_ = Graph::rows(per_layer_, first, outputs);
      }
      x = layer(i, x, h, own);
    }
    x = norm(x, model_.output_norm);
    g_.set_name(format_text("hidden.{}", config_.layers.size()), x);
    Tensor logits = g_.mat_mul(x, model_.output);  // (O, V)
    if (config_.soft_cap > 0) logits = g_.soft_cap(logits, config_.soft_cap);
    g_.set_name("logits", logits);
    if (top == 0) return std::move(g_);
    const Tensor best = g_.top_k(logits, top);
    g_.set_name("top", best);
    if (chain) {
      const Tensor draw = g_.input(kDraw, 1, op::Sample::kSuppressed + op::Sample::kMost);
      g_.set_name("chosen", g_.sample(best, draw, ids, positions_));
    }
    return std::move(g_);
  }

 private:
  Tensor norm(Tensor x, Weight weight) { return g_.rms_norm(x, weight, config_.eps); }
  Tensor linear(Tensor x, const Linear& w, f32 scale = 1) { return g_.mat_mul(x, w.weight, w.scale, scale); }

  // per_layer_ (T, L * P): what each layer adds for each token, from a table and from the embedding.
  void per_layer_inputs(Tensor ids, Tensor x) {
    const Weight& table = model_.per_layer_token_embd;
    const Tensor from_table = model_.per_layer_rows_from_file
                                  ? g_.input(kPerLayerRows, ids.rows, table.cols)
                                  : g_.embed_rows(ids, table, per_layer_scale(config_));
    Tensor projected = linear(x, model_.per_layer_model_proj, 1 / std::sqrt(static_cast<f32>(config_.width)));
    projected = g_.rms_norm(projected, model_.per_layer_proj_norm, config_.eps, config_.ple);
    per_layer_ = g_.add(from_table, projected, 1 / std::sqrt(2.0f));
  }

  // Before norms and rotation, with the positions of their tokens.
  struct KeysValues {
    Tensor k, v, positions;  // (T, K * D)
  };

  // Values come first: in a mix of types they are the odd ones, and keys and queries remain side by side.
  KeysValues project_kv(u32 index, Tensor h) {
    const LayerWeights& w = model_.layers[index];
    KeysValues out;
    out.positions = positions_;
    if (w.attn_v) out.v = linear(h, w.attn_v);
    out.k = linear(h, w.attn_k);
    if (!w.attn_v) out.v = out.k;
    return out;
  }

  void write_kv(u32 index, const KeysValues& own) {
    const LayerConfig& layer = config_.layers[index];
    const Tensor k = g_.rms_norm(own.k, model_.layers[index].attn_k_norm, config_.eps, layer.head_size);
    g_.kv_write(g_.rope(k, own.positions, layer.head_size, frequencies_[layer.sliding]), own.positions,
                states_[2 * index]);
    g_.kv_write(g_.rms_norm(own.v, {}, config_.eps, layer.head_size), own.positions, states_[2 * index + 1]);
  }

  Tensor layer(u32 index, Tensor x, Tensor h, const std::optional<KeysValues>& own) {
    const LayerConfig& layer = config_.layers[index];
    const LayerWeights& w = model_.layers[index];
    Tensor q = linear(h, w.attn_q);  // (T, H * D)
    q = g_.rms_norm(q, w.attn_q_norm, config_.eps, layer.head_size);
    q = g_.rope(q, positions_, layer.head_size, frequencies_[layer.sliding]);
    if (own) write_kv(index, *own);
    Tensor a = g_.attention(q, states_[2 * layer.kv_layer], states_[2 * layer.kv_layer + 1], positions_,
                            layer.sliding ? last_ : positions_, layer.heads, layer.kv_heads, layer.head_size,
                            layer.sliding ? config_.window : 0);
    a = linear(a, w.attn_output);
    x = g_.add(x, norm(a, w.post_attention_norm));

    Tensor f = mlp(norm(x, w.ffn_norm), w);
    if (config_.experts > 0) {
      const Tensor mixed = experts(x, w);  // before the norms, so that all of these are one step
      const Tensor dense = norm(f, w.post_ffw_norm_1);
      f = g_.add(dense, norm(mixed, w.post_ffw_norm_2));
    }
    f = norm(f, w.post_ffw_norm);
    if (config_.ple == 0) return g_.add(x, f, 1, w.layer_output_scale);

    x = g_.add(x, f);
    const Tensor per_layer = Graph::cols(per_layer_, index * config_.ple, config_.ple);
    const Tensor gated = g_.gelu_mul(linear(x, w.inp_gate), per_layer);  // (T, P)
    return g_.add(x, norm(linear(gated, w.proj), w.post_norm), 1, w.layer_output_scale);
  }

  Tensor mlp(Tensor x, const LayerWeights& w) {
    return linear(g_.gelu_mul(linear(x, w.ffn_gate), linear(x, w.ffn_up)), w.ffn_down);
  }

  // The router reads the residual itself, the experts its norm.
  Tensor experts(Tensor x, const LayerWeights& w) {
    const Tensor r =
        g_.rms_norm(x, w.ffn_gate_inp_scale, config_.eps, 0, 1 / std::sqrt(static_cast<f32>(config_.width)));
    const Tensor logits = g_.mat_mul(r, w.ffn_gate_inp);
    const Tensor z = norm(x, w.pre_ffw_norm_2);
    const auto [ids, weights] = g_.top_experts(logits, config_.experts_used);
    // With one pair for an expert or two, grouping saves nothing.
    ExpertGroups groups;
    if (u64{ids.rows} * ids.cols >= u64{2} * config_.experts) groups = g_.group_experts(ids, config_.experts);
    const auto expert_linear = [&](Tensor input, const Linear& l) {
      return g_.expert_mat_mul(input, ids, l.weight, l.scale, groups);
    };
    Tensor gate, up;  // (T * A, F of an expert)
    if (w.ffn_gate_up_exps) {
      const Tensor both = expert_linear(z, w.ffn_gate_up_exps);
      gate = Graph::cols(both, 0, config_.expert_ffn);
      up = Graph::cols(both, config_.expert_ffn, config_.expert_ffn);
    } else {
      gate = expert_linear(z, w.ffn_gate_exps);
      up = expert_linear(z, w.ffn_up_exps);
    }
    return g_.expert_sum(expert_linear(g_.gelu_mul(gate, up), w.ffn_down_exps), weights);
  }

  const TextModel& model_;
  const TextConfig& config_;
  const std::vector<KvRing>& rings_;
  Graph g_;
  Tensor positions_, last_, per_layer_;
  std::vector<Tensor> states_;
  u32 frequencies_[2] = {};
};

}  // namespace

f32 per_layer_scale(const TextConfig& config) { return std::sqrt(static_cast<f32>(config.ple)); }

std::vector<KvRing> kv_rings(const TextConfig& config, u32 context, u32 batch) {
  std::vector<KvRing> rings;
  for (u32 i = 0; i < config.owned_kv_layers(); ++i) {
    const LayerConfig& layer = config.layers[i];
    const u32 slots = layer.sliding ? std::min(context, config.window + batch - 1) : context;
    rings.push_back({slots, layer.kv_heads * layer.head_size});
  }
  return rings;
}

bool rings_hold(const std::vector<KvRing>& rings, u32 window, u32 position, u32 written) {
  // Key j is gone once position j + slots was written; a ring shorter than the context belongs to a sliding
  // layer.
  const u64 oldest = position >= window ? u64{position} - window + 1 : 0;
  return std::ranges::all_of(rings, [&](const KvRing& ring) { return oldest + ring.slots >= written; });
}

Graph build_text_graph(const TextModel& model, const std::vector<KvRing>& rings, PassShape shape) {
  return TextGraphBuilder(model, rings).build(shape);
}

}  // namespace bezel
