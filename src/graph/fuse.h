// Operations that one dispatch can do together. The graph stays as it is, so that the reference executor runs
// what it always ran; only the plan, and the arena's lifetimes, know of steps.
#pragma once
#include <span>
#include <utility>
#include <vector>

#include "graph/graph.h"

namespace bezel {

// Up to so many tokens a product runs token by token, with kernels for vectors.
inline constexpr u32 kVectorTokens = 4;

struct Step {
  enum class Kind {
    kOne,       // a single operation, after the norms
    kResidual,  // RmsNorm, Add, and maybe RmsNorm of the sum
    kHeads,     // per head: RmsNorm and Rope of the queries; the same and KvWrite of the keys; RmsNorm and
                // KvWrite of the values. The queries, or the keys and values, or all of them
    kAttend,    // kHeads of one token, the queries or all of them, and the Attention of these
    kGated,     // one MatMul, or two of the same vector, and the GeluMul of them
    kProducts,  // two or three MatMul of the same vector and matrices of one type
    // ExpertMatMul of one pair at a time, and the GeluMul of its two halves; before them maybe TopExperts
    kExpertsGated,
    kMix,  // ExpertSum; RmsNorm of the dense branch and of it, their Add, its RmsNorm, and the Add of that
  };
  Kind kind = Kind::kOne;
  std::size_t first = 0, count = 1;  // operations
  // The first of them, if the others are products of what they give: a RmsNorm of whole rows, or what
  // kResidual has. Every workgroup of such a product can do them again.
  std::size_t norms = 0;
  bool keep = false;  // whether others, too, read what these norms give
};

// Steps in order, each operation in one. A tensor between the operations of one step is read by nothing else,
// but for a sum and what `keep` tells of.
std::vector<Step> fuse(const Graph& graph);

// [first, end) of neighbouring steps that are products of one token, norms before them included: those that
// relay.wgsl could do in one dispatch, if their weights allow it.
std::vector<std::pair<std::size_t, std::size_t>> relay_runs(const Graph& graph, std::span<const Step> steps);

}  // namespace bezel
