#include "graph/fuse.h"

namespace bezel {
namespace {

bool same(const Tensor& a, const Tensor& b) {
  return a.buffer == b.buffer && a.rows == b.rows && a.cols == b.cols && a.offset == b.offset &&
         (a.stride == b.stride || a.rows == 1);
}

class Fusion {
 public:
  explicit Fusion(const Graph& graph) : graph_(graph), readers_(graph.buffers().size(), 0) {
    for (const Op& op : graph.ops()) {
      std::visit(
          [&](const auto& o) {
            o.tensors([&](const Tensor& x) { ++readers_[x.buffer]; }, [](const Tensor&) {});
          },
          op);
    }
    for (const auto& [name, x] : graph.names()) readers_[x.buffer] += 2;
  }

  std::vector<Step> run() {
    std::vector<Step> steps;
    for (std::size_t at = 0; at < graph_.ops().size(); at += steps.back().count) steps.push_back(step(at));
    return steps;
  }

 private:
  template <class T>
  const T* get(std::size_t at) const {
    return at < graph_.ops().size() ? std::get_if<T>(&graph_.ops()[at]) : nullptr;
  }
  // Whether `x` goes from one operation to the next and nowhere else.
  bool passes(const Tensor& x, const Tensor& to) const {
    return same(x, to) && readers_[x.buffer] == 1 && graph_.buffers()[x.buffer].storage == Storage::kScratch;
  }

  Step step(std::size_t at) const {
    using enum Step::Kind;
    if (const std::size_t count = residual(at)) return {kResidual, at, count};
    if (const std::size_t count = heads(at)) {
      return attends(at, count) ? Step{kAttend, at, count + 1} : Step{kHeads, at, count};
    }
    if (const std::size_t count = gated(at)) return {kGated, at, count};
    if (const std::size_t count = products(at); count > 1) return {kProducts, at, count};
    return {kOne, at, 1};
  }

  std::size_t residual(std::size_t at) const {
    const auto* norm = get<op::RmsNorm>(at);
    const auto* add = get<op::Add>(at + 1);
    if (norm == nullptr || add == nullptr || norm->group != norm->x.cols || !passes(norm->out, add->b))
      return 0;
    const auto* next = get<op::RmsNorm>(at + 2);
    return next != nullptr && next->group == next->x.cols && same(next->x, add->out) ? 3 : 2;
  }

  // A norm of heads and their rotation.
  bool turned(std::size_t at) const {
    const auto* norm = get<op::RmsNorm>(at);
    const auto* rope = get<op::Rope>(at + 1);
    return norm != nullptr && rope != nullptr && norm->scale == 1 && norm->group == rope->head_size &&
           norm->group % 4 == 0 && rope->positions.cols == 1 && passes(norm->out, rope->x);
  }

  // Keys, then values, of the same tokens.
  bool keys_and_values(std::size_t at) const {
    if (!turned(at)) return false;
    const auto *k = get<op::RmsNorm>(at), *v = get<op::RmsNorm>(at + 3);
    const auto* rope = get<op::Rope>(at + 1);
    const auto *keys = get<op::KvWrite>(at + 2), *values = get<op::KvWrite>(at + 4);
    return keys != nullptr && v != nullptr && values != nullptr && passes(rope->out, keys->x) &&
           passes(v->out, values->x) && !v->weight && v->scale == 1 && v->group == k->group &&
           v->eps == k->eps && v->x.cols == k->x.cols && same(keys->positions, rope->positions) &&
           same(values->positions, rope->positions) && values->ring.rows == keys->ring.rows;
  }

  std::size_t heads(std::size_t at) const {
    if (keys_and_values(at)) return 5;
    if (!turned(at)) return 0;
    if (!keys_and_values(at + 2)) return 2;
    const auto *q = get<op::RmsNorm>(at), *k = get<op::RmsNorm>(at + 2);
    const auto *q_rope = get<op::Rope>(at + 1), *k_rope = get<op::Rope>(at + 3);
    return q->group == k->group && q->eps == k->eps && q_rope->frequencies == k_rope->frequencies &&
                   same(q_rope->positions, k_rope->positions)
               ? 7
               : 2;
  }

  // Whether after `count` operations on heads comes the attention of one token to what they give.
  bool attends(std::size_t at, std::size_t count) const {
    const auto* attention = get<op::Attention>(at + count);
    if (attention == nullptr || attention->q.rows != 1 || count == 5) return false;
    const auto* norm = get<op::RmsNorm>(at);
    const auto* rope = get<op::Rope>(at + 1);
    const bool queries = passes(rope->out, attention->q) && norm->group == attention->head_size &&
                         same(rope->positions, attention->positions) &&
                         same(attention->positions, attention->last);
    if (!queries || count == 2) return queries;
    const auto *keys = get<op::KvWrite>(at + 4), *values = get<op::KvWrite>(at + 6);
    return same(keys->ring, attention->keys) && same(values->ring, attention->values);
  }

  // A product with a vector, or with a few.
  const op::MatMul* product(std::size_t at) const {
    const auto* product = get<op::MatMul>(at);
    return product != nullptr && product->x.rows <= kVectorTokens && !product->clamp ? product : nullptr;
  }

  std::size_t gated(std::size_t at) const {
    const auto* gate = product(at);
    if (gate == nullptr) return 0;
    if (const auto* mul = get<op::GeluMul>(at + 1)) {
      return passes(gate->out, mul->gate) && mul->up.buffer != gate->out.buffer ? 2 : 0;
    }
    const auto* up = product(at + 1);
    const auto* mul = get<op::GeluMul>(at + 2);
    return up != nullptr && mul != nullptr && same(up->x, gate->x) && up->weight.type == gate->weight.type &&
                   up->weight.rows == gate->weight.rows && passes(gate->out, mul->gate) &&
                   passes(up->out, mul->up)
               ? 3
               : 0;
  }

  // How many products there are from here on that one dispatch can compute.
  std::size_t products(std::size_t at) const {
    constexpr std::size_t kMost = 3;
    const auto* first = product(at);
    if (first == nullptr) return 0;
    std::size_t count = 1;
    while (count < kMost && gated(at + count) == 0) {
      const auto* next = product(at + count);
      if (next == nullptr || !same(next->x, first->x) || next->weight.type != first->weight.type) break;
      ++count;
    }
    return count;
  }

  const Graph& graph_;
  std::vector<u32> readers_;  // by buffer; a name counts as several
};

}  // namespace

std::vector<Step> fuse(const Graph& graph) { return Fusion(graph).run(); }

}  // namespace bezel
