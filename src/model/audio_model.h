// Gemma 4's way from sound to soft tokens as found in a file: configuration and the weights that its graph
// uses, shapes checked.
#pragma once
#include <vector>

#include "base/result.h"
#include "base/task.h"
#include "gguf/gguf.h"
#include "graph/graph.h"
#include "model/tower_weights.h"

namespace bezel {

enum class AudioKind {
  kConformer,  // an encoder over log-mel features: E2B, E4B ("gemma4a")
  kUnified,    // one linear over the waveform itself: 12B ("gemma4ua")
};

struct AudioConfig {
  static constexpr f32 kEps = 1e-6f;  // some files say 1e-5, which is wrong
  AudioKind kind = AudioKind::kConformer;
  u32 frame = 128;     // numbers in a row of input: mel bins, or samples
  u32 text_width = 0;  // of a soft token
  // Of a conformer.
  u32 width = 0, heads = 0, ffn = 0, taps = 0;
  u32 channels[2] = {};  // of the two convolutions
  u32 output = 0;        // what the blocks' width becomes before the last linear
  u32 head_size() const { return width / heads; }
  u32 bands() const { return (frame + 3) / 4; }  // mel bins after the two convolutions

  // Numbers in the longest norm that has no weight.
  u32 longest_plain_norm() const { return kind == AudioKind::kUnified ? frame : output; }
};

struct AudioFeedForward {
  Weight norm, post_norm;
  ClampedLinear up, down;
};

struct AudioBlock {
  AudioFeedForward before, after;
  Weight attn_norm, attn_post_norm;
  ClampedLinear attn_q, attn_k, attn_v, attn_out;
  Weight query_scale;  // D numbers
  Weight relative;     // (H * D, d)
  Weight conv_norm, conv_time, conv_time_norm;
  ClampedLinear conv_in, conv_out;  // (2d, d), (d, d)
  Weight out_norm;
};

struct AudioModel {
  AudioConfig config;
  std::vector<TensorInfo> tensors;  // by Weight::index
  Weight conv[2], conv_norm[2], input;
  std::vector<AudioBlock> blocks;
  Weight output, output_bias;
  Weight embedding;  // to the text model's width
};

bool has_audio(const Gguf& file);

// The two kinds of files give different tensors the same names ("ln2", "a.pre_encode.out"): which one it is
// decides a tensor that only one of them has. `text_width` is that of the model which will read the soft
// tokens. The views in `tensors` point into `file`, which must outlive the model.
Task<Result<AudioModel>> load_audio_model(Gguf& file, u32 text_width);

}  // namespace bezel
