// The Gemma 4 text model as a Graph.
#pragma once
#include <vector>

#include "graph/graph.h"
#include "model/text_model.h"

namespace bezel {

// The graph's inputs, one row per token.
enum TextInput : u32 {
  kTokenIds,  // 0, the padding token, where a soft token is
  kPositions,
  kPerLayerRows,  // (T, L * P), where per_layer_rows_from_file: rows of the table times per_layer_scale()
  // In passes with soft tokens.
  kSoftRows,  // (T, d), embeddings
  kIsSoft,    // whether it is one
  kLast,      // the last position that it sees in sliding layers; where pictures_see_ahead()
  kDraw,      // in passes that choose the next token: see op::Sample
  kTextInputs,
};
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

struct PassShape {
  u32 tokens = 0;
  u32 outputs = 0;     // the last of them, whose logits are wanted
  u32 top = 0;         // and how many of the best of each of these; 0: only the logits
  bool soft = false;   // some are embeddings of a picture or a recording
  bool chain = false;  // one token, and the next is chosen where the pass finds its token when it runs again
  friend auto operator<=>(const PassShape&, const PassShape&) = default;
};

// The pass over a batch that gives the logits, (outputs, V) named "logits", and with `top` > 0 also "top",
// see op::TopK; with `chain` also "chosen", see op::Sample. Everything that only serves other tokens' logits
// is left out: after the last layer that owns K and V, work continues for the output rows alone, and not at
// all without any. This is exact.
Graph build_text_graph(const TextModel& model, const std::vector<KvRing>& rings, PassShape shape);

}  // namespace bezel
