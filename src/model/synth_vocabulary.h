// A made-up vocabulary with Gemma 4's layout: special tokens, newline and space runs and byte pieces where
// real files have them, then letters and all short lower-case words, with the merges that build them.
#pragma once
#include <string>
#include <vector>

#include "base/types.h"

namespace bezel {

struct SynthVocabulary {
  std::vector<std::string> pieces;
  std::vector<i32> types;
  std::vector<std::string> merges;
};

// `size` is at least kSmallestSynthVocabulary.
constexpr u32 kSmallestSynthVocabulary = 768;
SynthVocabulary make_synth_vocabulary(u32 size);

}  // namespace bezel
