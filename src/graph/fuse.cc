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

  // A step with the norms before its products, if it can have them.
  Step step(std::size_t at) const {
    const std::size_t norms = norms_at(at);
    if (norms == 0) return step_of_one_kind(at);
    const Tensor& x = last_of(at + norms - 1);
    if (const std::size_t count = experts_gated(at + norms); count > 0 && norms == 1) {
      const auto* both = get<op::ExpertMatMul>(at + count - 1);
      if (passes(x, both->x))
        return {.kind = Step::Kind::kExpertsGated, .first = at, .count = 1 + count, .norms = 1};
    }
    const auto* first = product(at + norms);
    if (first == nullptr || !same(first->x, x)) return step_of_one_kind(at);
    Step step = step_of_one_kind(at + norms);
    u32 readers = 0;
    for (std::size_t i = 0; i < step.count; ++i) {
      if (get<op::MatMul>(step.first + i) != nullptr) ++readers;
      // A workgroup may get here before another one has written what the norms give.
      const auto* mul = get<op::GeluMul>(step.first + i);
      if (mul != nullptr && gives(at, norms, mul->up)) return step_of_one_kind(at);
    }
    step.first = at, step.count += norms, step.norms = norms;
    step.keep = norms != 2 &&
                (readers_[x.buffer] != readers || graph_.buffers()[x.buffer].storage != Storage::kScratch);
    return step;
  }

  // How many operations from here on are norms of whole rows, and a residual, that a product could begin
  // with.
  std::size_t norms_at(std::size_t at) const {
    if (const std::size_t count = residual(at)) return count;
    const auto* norm = get<op::RmsNorm>(at);
    return norm != nullptr && norm->group == norm->x.cols ? 1 : 0;
  }

  // What a norm or a sum gives.
  const Tensor& last_of(std::size_t at) const {
    const auto* norm = get<op::RmsNorm>(at);
    return norm != nullptr ? norm->out : get<op::Add>(at)->out;
  }

  bool gives(std::size_t at, std::size_t count, const Tensor& x) const {
    for (std::size_t i = at; i < at + count; ++i) {
      if (last_of(i).buffer == x.buffer) return true;
    }
    return false;
  }

  Step step_of_one_kind(std::size_t at) const {
    using enum Step::Kind;
    if (const std::size_t count = residual(at)) return {kResidual, at, count};
    if (const std::size_t count = heads(at)) {
      return attends(at, count) ? Step{kAttend, at, count + 1} : Step{kHeads, at, count};
    }
    if (const std::size_t count = gated(at)) return {kGated, at, count};
    if (const std::size_t count = products(at); count > 1) return {kProducts, at, count};
    if (const std::size_t count = experts_gated(at)) return {kExpertsGated, at, count};
    if (const std::size_t count = mix(at)) return {kMix, at, count};
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

  std::size_t experts_gated(std::size_t at) const {
    const auto* choice = get<op::TopExperts>(at);
    if (choice != nullptr) ++at;
    const auto* both = get<op::ExpertMatMul>(at);
    const auto* mul = get<op::GeluMul>(at + 1);
    if (both == nullptr || mul == nullptr || both->grouped()) return 0;
    const Tensor& out = both->out;
    const u32 half = out.cols / 2;
    const bool gated = out.cols % 2 == 0 && same(mul->gate, Graph::cols(out, 0, half)) &&
                       same(mul->up, Graph::cols(out, half, half)) && readers_[out.buffer] == 2 &&
                       graph_.buffers()[out.buffer].storage == Storage::kScratch;
    if (!gated || (choice != nullptr && !same(choice->ids, both->ids))) return 0;
    return choice != nullptr ? 3 : 2;
  }

  // Of whole rows, and nothing more.
  bool plain(const op::RmsNorm& norm, f32 eps) const {
    return norm.group == norm.x.cols && norm.scale == 1 && norm.eps == eps;
  }

  std::size_t mix(std::size_t at) const {
    const auto* experts = get<op::ExpertSum>(at);
    const auto *dense = get<op::RmsNorm>(at + 1), *mixed = get<op::RmsNorm>(at + 2);
    const auto *both = get<op::Add>(at + 3), *sum = get<op::Add>(at + 5);
    const auto* norm = get<op::RmsNorm>(at + 4);
    if (experts == nullptr || dense == nullptr || mixed == nullptr || both == nullptr || norm == nullptr ||
        sum == nullptr)
      return 0;
    return plain(*dense, norm->eps) && plain(*mixed, norm->eps) && plain(*norm, norm->eps) &&
                   both->scale == 1 && !both->scale_by && passes(experts->out, mixed->x) &&
                   passes(dense->out, both->a) && passes(mixed->out, both->b) && passes(both->out, norm->x) &&
                   passes(norm->out, sum->b)
               ? 6
               : 0;
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

std::vector<std::pair<std::size_t, std::size_t>> relay_runs(const Graph& graph, std::span<const Step> steps) {
  const auto multiplies = [&](const Step& step) {
    const auto* product = std::get_if<op::MatMul>(&graph.ops()[step.first + step.norms]);
    return product != nullptr && product->x.rows == 1 && !product->clamp;
  };
  std::vector<std::pair<std::size_t, std::size_t>> runs;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (!multiplies(steps[i])) continue;
    if (runs.empty() || runs.back().second != i) runs.emplace_back(i, i);
    runs.back().second = i + 1;
  }
  return runs;
}

}  // namespace bezel
