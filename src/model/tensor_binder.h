// Finds a model's tensors in a file.
#pragma once
#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "gguf/gguf.h"
#include "graph/graph.h"

namespace bezel {

struct TensorShape {
  u32 cols, rows = 1, depth = 1;
};

// Looks tensors up by name, checks type and shape, and collects them: Weight::index counts in `tensors`, the
// list that loads a model. The first problem is kept and reported at the end, so that binding reads as a
// plain list.
class TensorBinder {
 public:
  using Alias = std::pair<std::string_view, std::string_view>;

  // `aliases`: names, without the prefix, and what some files call the same tensor.
  TensorBinder(const Gguf& file, std::vector<TensorInfo>& tensors, std::span<const Alias> aliases = {})
      : file_(file), tensors_(tensors), aliases_(aliases) {}

  // What comes before every name from here on: "blk.3.".
  void set_prefix(std::string prefix) { prefix_ = std::move(prefix); }
  const std::string& prefix() const { return prefix_; }

  Weight required(std::string_view name, TensorShape shape);
  Weight optional(std::string_view name, TensorShape shape);
  // A tensor of the shape `ne` whose first dimensions together are the columns of a matrix: the kernel of a
  // convolution. It is in the list as that matrix.
  Weight flattened(std::string_view name, const std::array<u64, 4>& ne, TensorShape shape);

  bool has(std::string_view name) const { return find(name) != nullptr; }
  Status status() const { return problem_ ? Status(std::unexpected(*problem_)) : Status(); }

 private:
  const TensorInfo* find(std::string_view name) const;
  const TensorInfo* find_required(std::string_view name);
  Weight add(TensorInfo info, TensorShape shape);
  bool check(const TensorInfo& info, const std::array<u64, 4>& ne);
  void note(Error error) {
    if (!problem_) problem_ = std::move(error);
  }

  const Gguf& file_;
  std::vector<TensorInfo>& tensors_;
  std::span<const Alias> aliases_;
  std::string prefix_;
  std::optional<Error> problem_;
};

}  // namespace bezel
