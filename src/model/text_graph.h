// The Gemma 4 text model as a Graph.
#pragma once
#include <vector>

#include "graph/graph.h"
#include "model/text_model.h"

namespace bezel {

// The graph's inputs, one row per token. kPerLayerRows, (T, L * P), exists where the model's
// per_layer_rows_from_file says so: rows of the per-layer table times per_layer_scale().
enum TextInput : u32 { kTokenIds = 0, kPositions = 1, kPerLayerRows = 2 };
f32 per_layer_scale(const TextConfig& config);

// One KV ring: state 2i holds the keys and 2i + 1 the values of the i-th layer that owns them.
struct KvRing {
  u32 slots = 0;  // position p lives in slot p mod slots
  u32 cols = 0;   // K * D
};

// Rings for a context of `context` tokens fed in batches of at most `batch`. A sliding layer's ring is as
// short as the window allows: within a batch the first token still sees window - 1 earlier keys after the
// last one was written.
std::vector<KvRing> kv_rings(const TextConfig& config, u32 context, u32 batch);

// Whether, after positions below `written` were fed, the rings still hold every key that a token at
// `position` sees.
bool rings_hold(const std::vector<KvRing>& rings, u32 window, u32 position, u32 written);

// The pass over a batch of `tokens` tokens that gives the logits, (outputs, V) named "logits", of its last
// `outputs` tokens. Everything that only serves other tokens' logits is left out: after the last layer that
// owns K and V, work continues for the output rows alone, and not at all without any. This is exact. With
// `top` > 0 there is also "top", the best of each row of logits: see op::TopK.
Graph build_text_graph(const TextModel& model, const std::vector<KvRing>& rings, u32 tokens, u32 outputs,
                       u32 top = 0);

}  // namespace bezel
