// What a model costs: parameters, bytes read per token, memory. Computed from the header alone.
#pragma once
#include <map>
#include <string_view>

#include "base/types.h"
#include "gguf/gguf.h"
#include "model/text_model.h"

namespace bezel {

struct Footprint {
  u64 parameters = 0;       // of the text model as published, which counts K and V of layers that share them
  u64 weight_bytes = 0;     // of the weights that are used
  u64 padding_bytes = 0;    // more that they take on a GPU
  u64 largest_piece = 0;    // bytes there of what may not be cut: a row, or one matrix of a stack
  u64 table_bytes = 0;      // of both, the per-layer embedding table, of which a token reads one row
  u64 bytes_per_token = 0;  // weights read to decode one token
  u64 kv_per_token = 0;     // elements that the cache keeps for each token of the context, global layers
  u64 kv_fixed = 0;         // elements of the sliding layers' rings, whatever the context
  u64 kv_elements(u32 context) const { return kv_fixed + kv_per_token * context; }
};

// `batch` is the largest number of tokens fed at once; it lengthens the rings.
Footprint footprint(const Gguf& file, const TextModel& model, u32 batch);

// False for the vision and audio tensors that some files hold as well.
bool is_text_tensor(std::string_view name);

// How often each type occurs in a file, and its bytes.
struct TypeCount {
  u64 tensors = 0, bytes = 0;
};
std::map<DType, TypeCount> quant_mix(const Gguf& file);

}  // namespace bezel
