#include "graph/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/check.h"
#include "base/parallel.h"
#include "gguf/quant.h"

namespace bezel {
namespace {

// Everything here lies in memory: the caller has made sure that it fits.
using std::size_t;

// Eight partial sums, so that the compiler may use vectors; the order is fixed, so results repeat.
f64 dot(const f32* w, const f64* x, u64 n) {
  f64 partial[8] = {};
  u64 i = 0;
  for (; i + 8 <= n; i += 8) {
    for (u64 j = 0; j < 8; ++j) partial[j] += f64{w[i + j]} * x[i + j];
  }
  f64 sum = 0;
  for (; i < n; ++i) sum += f64{w[i]} * x[i];
  for (const f64 p : partial) sum += p;
  return sum;
}

f64 gelu(f64 t) {
  constexpr f64 kSqrt2OverPi = 0.7978845608028654;
  return 0.5 * t * (1 + std::tanh(kSqrt2OverPi * t * (1 + 0.044715 * t * t)));
}

void softmax(std::span<f64> x) {
  const f64 top = *std::ranges::max_element(x);
  f64 sum = 0;
  for (f64& v : x) sum += v = std::exp(v - top);
  for (f64& v : x) v /= sum;
}

// The scratch buffers that come into being with each operation, and those that nobody needs after it: read
// for the last time, and without a name by which one could ask for them.
struct Lives {
  std::vector<std::vector<u32>> begin, end;
};

Lives lives_of(const Graph& graph) {
  const auto& buffers = graph.buffers();
  const size_t count = graph.ops().size();
  std::vector<size_t> first(buffers.size(), count), last(buffers.size(), count);  // last: count if kept
  for (size_t n = 0; n < count; ++n) {
    std::visit(
        [&](const auto& op) {
          op.tensors([&](const Tensor& x) { last[x.buffer] = n; },
                     [&](const Tensor& x) {
                       first[x.buffer] = std::min(first[x.buffer], n);
                       last[x.buffer] = count;
                     });
        },
        graph.ops()[n]);
  }
  for (const auto& [name, x] : graph.names()) last[x.buffer] = count;
  Lives lives{std::vector<std::vector<u32>>(count), std::vector<std::vector<u32>>(count)};
  for (u32 i = 0; i < buffers.size(); ++i) {
    if (buffers[i].storage != Storage::kScratch) continue;
    if (first[i] < count) lives.begin[first[i]].push_back(i);
    if (last[i] < count) lives.end[last[i]].push_back(i);
  }
  return lives;
}

}  // namespace

bool Reference::run(const Graph& graph, std::span<const std::vector<f64>> inputs,
                    std::span<std::vector<f64>> states,
                    const std::function<bool(u64 done, u64 total)>& progress) {
  const auto& buffers = graph.buffers();
  scratch_.assign(buffers.size(), {});
  data_.assign(buffers.size(), nullptr);
  for (u32 i = 0; i < buffers.size(); ++i) {
    const GraphBuffer& buffer = buffers[i];
    if (buffer.storage == Storage::kInput) {
      CHECK(buffer.index < inputs.size() && inputs[buffer.index].size() == buffer.elements);
      scratch_[i] = inputs[buffer.index];
      data_[i] = scratch_[i].data();
    } else if (buffer.storage == Storage::kState) {
      CHECK(buffer.index < states.size() && states[buffer.index].size() == buffer.elements);
      data_[i] = states[buffer.index].data();
    }
  }
  const Lives lives = lives_of(graph);
  for (size_t n = 0; n < graph.ops().size(); ++n) {
    if (progress && !progress(n, graph.ops().size())) return false;
    for (const u32 i : lives.begin[n]) {
      scratch_[i].resize(static_cast<size_t>(buffers[i].elements));
      data_[i] = scratch_[i].data();
    }
    std::visit([&](const auto& op) { run(graph, op); }, graph.ops()[n]);
    for (const u32 i : lives.end[n]) {
      scratch_[i] = std::vector<f64>();
      data_[i] = nullptr;
    }
  }
  return true;
}

u64 Reference::bytes_of(const Graph& graph) {
  const auto& buffers = graph.buffers();
  const Lives lives = lives_of(graph);
  u64 now = 0;
  for (const GraphBuffer& buffer : buffers) now += buffer.storage == Storage::kInput ? buffer.elements : 0;
  u64 most = now;
  for (size_t n = 0; n < graph.ops().size(); ++n) {
    for (const u32 i : lives.begin[n]) now += buffers[i].elements;
    most = std::max(most, now);
    for (const u32 i : lives.end[n]) now -= buffers[i].elements;
  }
  return most * sizeof(f64);
}

std::vector<f64> Reference::values(const Tensor& x) const {
  CHECK(data_[x.buffer] != nullptr);
  std::vector<f64> out;
  out.reserve(size_t{x.rows} * x.cols);
  for (u32 r = 0; r < x.rows; ++r) out.insert(out.end(), at(x, r), at(x, r) + x.cols);
  return out;
}

void Reference::weight_row(const Weight& weight, u64 row, std::span<f32> out) const {
  const auto row_bytes = static_cast<size_t>(dtype_bytes(weight.type, weight.cols));
  const Bytes all = weights_.bytes(weight.index);
  dequantize(weight.type, all.subspan(static_cast<size_t>(row) * row_bytes, row_bytes), out);
}

std::vector<f32> Reference::vector_of(const Weight& weight) const {
  std::vector<f32> out(weight.cols);
  weight_row(weight, 0, out);
  return out;
}

std::vector<f32> Reference::vector_or(const Weight& weight, u32 count, f32 otherwise) const {
  return weight ? vector_of(weight) : std::vector<f32>(count, otherwise);
}

void Reference::run(const Graph&, const op::EmbedRows& op) {
  std::vector<f32> row(op.table.cols);
  for (u32 t = 0; t < op.out.rows; ++t) {
    const f64 id = *at(op.ids, t);
    CHECK(id >= 0 && id < op.table.rows);
    weight_row(op.table, static_cast<u64>(id), row);
    std::ranges::transform(row, at(op.out, t), [&](f32 v) { return f64{v} * op.scale; });
  }
}

void Reference::run(const Graph&, const op::Splice& op) {
  for (u32 t = 0; t < op.out.rows; ++t) {
    std::copy_n(at(*at(op.is_soft, t) != 0 ? op.soft : op.x, t), op.out.cols, at(op.out, t));
  }
}

void Reference::run(const Graph&, const op::MatMul& op) {
  const f64 scale = op.scale * (op.scale_by ? f64{vector_of(op.scale_by)[0]} : 1.0);
  const Clamp& clamp = op.clamp;
  std::vector<f64> clamped;  // x within its bounds
  if (clamp) {
    clamped = values(op.x);
    for (f64& v : clamped) v = std::clamp<f64>(v, clamp.in_min, clamp.in_max);
  }
  parallel_for(op.weight.rows, u64{op.weight.cols} * (op.x.rows + 1), [&](u64 begin, u64 end) {
    std::vector<f32> row(op.weight.cols);
    for (u64 r = begin; r < end; ++r) {
      weight_row(op.weight, r, row);
      for (u32 t = 0; t < op.x.rows; ++t) {
        const f64* x = clamp ? clamped.data() + size_t{t} * op.x.cols : at(op.x, t);
        const f64 y = scale * dot(row.data(), x, row.size());
        at(op.out, t)[r] = clamp ? std::clamp<f64>(y, clamp.out_min, clamp.out_max) : y;
      }
    }
  });
}

void Reference::run(const Graph&, const op::RmsNorm& op) {
  const std::vector<f32> weight = vector_or(op.weight, op.group, 1);
  for (u32 t = 0; t < op.x.rows; ++t) {
    for (u32 start = 0; start < op.x.cols; start += op.group) {
      const f64* x = at(op.x, t) + start;
      f64* out = at(op.out, t) + start;
      const f64 squares = std::inner_product(x, x + op.group, x, 0.0);
      const f64 factor = op.scale / std::sqrt(squares / op.group + op.eps);
      for (u32 i = 0; i < op.group; ++i) out[i] = x[i] * factor * weight[i];
    }
  }
}

void Reference::run(const Graph& graph, const op::Rope& op) {
  const auto& frequencies = graph.table(op.frequencies);
  const u32 half = op.head_size / 2;
  const u32 columns = op.positions.cols;
  for (u32 t = 0; t < op.x.rows; ++t) {
    for (u32 column = 0; column < columns; ++column) {
      const f64 position = at(op.positions, t)[column];
      for (u32 i = 0; i < half; ++i) {
        const f64 c = std::cos(position * frequencies[i]);
        const f64 s = std::sin(position * frequencies[i]);
        for (u32 head = column * op.head_size; head < op.x.cols; head += columns * op.head_size) {
          const f64 a = at(op.x, t)[head + i];
          const f64 b = at(op.x, t)[head + i + half];
          at(op.out, t)[head + i] = a * c - b * s;
          at(op.out, t)[head + i + half] = a * s + b * c;
        }
      }
    }
  }
}

void Reference::run(const Graph&, const op::KvWrite& op) {
  for (u32 t = 0; t < op.x.rows; ++t) {
    const u64 slot = static_cast<u64>(*at(op.positions, t)) % op.ring.rows;
    f64* out = at(op.ring, slot);
    const std::span<const f64> x(at(op.x, t), op.x.cols);
    if (kv_ == KvType::kF16 || kv_ == KvType::kQ8) {
      std::ranges::copy(kv_decode(kv_, kv_encode(kv_, x)), out);
    } else {
      std::ranges::copy(x, out);
    }
  }
}

void Reference::run(const Graph&, const op::Attention& op) {
  const u32 queries_per_kv = op.heads / op.kv_heads;
  for (u32 t = 0; t < op.q.rows; ++t) {
    const auto position = static_cast<size_t>(*at(op.positions, t));
    const size_t first = op.window > 0 && position >= op.window ? position + 1 - op.window : 0;
    const size_t visible = static_cast<size_t>(*at(op.last, t)) + 1 - first;
    CHECK(visible <= op.keys.rows);
    for (u32 h = 0; h < op.heads; ++h) {
      const u32 kv = h / queries_per_kv * op.head_size;
      const f64* q = at(op.q, t) + h * op.head_size;
      std::vector<f64> scores(visible);
      for (size_t j = 0; j < visible; ++j) {
        const f64* key = at(op.keys, (first + j) % op.keys.rows) + kv;
        scores[j] = std::inner_product(q, q + op.head_size, key, 0.0);
      }
      softmax(scores);
      f64* out = at(op.out, t) + h * op.head_size;
      std::fill_n(out, op.head_size, 0.0);
      for (size_t j = 0; j < visible; ++j) {
        const f64* value = at(op.values, (first + j) % op.values.rows) + kv;
        for (u32 i = 0; i < op.head_size; ++i) out[i] += scores[j] * value[i];
      }
    }
  }
}

void Reference::run(const Graph&, const op::Add& op) {
  const f64 scale = op.scale * (op.scale_by ? f64{vector_of(op.scale_by)[0]} : 1.0);
  for (u32 t = 0; t < op.out.rows; ++t) {
    for (u32 i = 0; i < op.out.cols; ++i) at(op.out, t)[i] = (at(op.a, t)[i] + at(op.b, t)[i]) * scale;
  }
}

void Reference::run(const Graph&, const op::GeluMul& op) {
  for (u32 t = 0; t < op.out.rows; ++t) {
    for (u32 i = 0; i < op.out.cols; ++i) at(op.out, t)[i] = gelu(at(op.gate, t)[i]) * at(op.up, t)[i];
  }
}

void Reference::run(const Graph&, const op::SigmoidMul& op) {
  for (u32 t = 0; t < op.out.rows; ++t) {
    for (u32 i = 0; i < op.out.cols; ++i) {
      at(op.out, t)[i] = at(op.x, t)[i] / (1 + std::exp(-at(op.gate, t)[i]));
    }
  }
}

void Reference::run(const Graph&, const op::LayerNorm& op) {
  const std::vector<f32> weight = vector_or(op.weight, op.group, 1);
  const std::vector<f32> bias = vector_or(op.bias, op.group, 0);
  for (u32 t = 0; t < op.x.rows; ++t) {
    for (u32 start = 0; start < op.x.cols; start += op.group) {
      const f64* x = at(op.x, t) + start;
      f64* out = at(op.out, t) + start;
      const f64 mean = std::accumulate(x, x + op.group, 0.0) / op.group;
      f64 squares = 0;
      for (u32 i = 0; i < op.group; ++i) squares += (x[i] - mean) * (x[i] - mean);
      const f64 factor = 1 / std::sqrt(squares / op.group + op.eps);
      for (u32 i = 0; i < op.group; ++i) {
        out[i] = (x[i] - mean) * factor * weight[i] + bias[i];
        if (op.relu && out[i] < 0) out[i] = 0;
      }
    }
  }
}

void Reference::run(const Graph&, const op::Conv& op) {
  std::vector<std::vector<f32>> weight(op.weight.rows, std::vector<f32>(op.weight.cols));
  for (u32 r = 0; r < op.weight.rows; ++r) weight_row(op.weight, r, weight[r]);
  const u64 work = u64{op.out.cols} * op.weight.cols;
  parallel_for(op.out.rows, work, [&](u64 begin, u64 end) {
    std::vector<f64> seen(op.weight.cols);  // what a kernel covers, in the order of its weights
    for (u64 t = begin; t < end; ++t) {
      for (u32 column = 0; column < op.out_width(); ++column) {
        for (u32 i = 0; i < seen.size(); ++i) {
          const i64 y = static_cast<i64>(2 * t) + i % 9 / 3 - 1;
          const i64 x = i64{2} * column + i % 3 - 1;
          const bool inside = y >= 0 && y < op.x.rows && x >= 0 && x < op.width();
          seen[i] = inside ? at(op.x, static_cast<u64>(y))[x * op.channels + i / 9] : 0;
        }
        f64* out = at(op.out, t) + u64{column} * op.weight.rows;
        for (u32 r = 0; r < op.weight.rows; ++r) out[r] = dot(weight[r].data(), seen.data(), seen.size());
      }
    }
  });
}

void Reference::run(const Graph&, const op::ConvTime& op) {
  const u32 taps = op.weight.cols;
  std::vector<f32> weight(taps);
  for (u32 c = 0; c < op.x.cols; ++c) {
    weight_row(op.weight, c, weight);
    for (u32 t = 0; t < op.x.rows; ++t) {
      f64 sum = 0;
      for (u32 back = 0; back < std::min(taps, t + 1); ++back)
        sum += f64{weight[taps - 1 - back]} * at(op.x, t - back)[c];
      at(op.out, t)[c] = sum;
    }
  }
}

void Reference::run(const Graph&, const op::LocalAttention& op) {
  const std::vector<f32> weight = vector_of(op.weight);
  const u32 size = op.head_size();
  std::vector<f64> query(size);
  for (u32 t = 0; t < op.q.rows; ++t) {
    for (u32 head = 0; head < op.q.cols; head += size) {
      for (u32 i = 0; i < size; ++i) query[i] = at(op.q, t)[head + i] * op.query_scale * weight[i];
      std::vector<f64> scores(std::min(op.window(), t + 1));
      for (u32 back = 0; back < scores.size(); ++back) {
        const f64* key = at(op.keys, t - back) + head;
        const f64* relative = at(op.relative, back) + head;
        for (u32 i = 0; i < size; ++i) scores[back] += query[i] * (op.key_scale * key[i] + relative[i]);
        scores[back] = op.cap * std::tanh(scores[back] / op.cap);
      }
      softmax(scores);
      f64* out = at(op.out, t) + head;
      std::fill_n(out, size, 0.0);
      for (u32 back = 0; back < scores.size(); ++back) {
        const f64* value = at(op.values, t - back) + head;
        for (u32 i = 0; i < size; ++i) out[i] += scores[back] * value[i];
      }
    }
  }
}

void Reference::run(const Graph&, const op::TopExperts& op) {
  const u32 used = op.ids.cols;
  std::vector<u32> order(op.logits.cols);
  for (u32 t = 0; t < op.logits.rows; ++t) {
    std::vector<f64> p(at(op.logits, t), at(op.logits, t) + op.logits.cols);
    softmax(p);
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, [&](u32 a, u32 b) { return p[a] > p[b]; });
    f64 sum = 0;
    for (u32 a = 0; a < used; ++a) sum += p[order[a]];
    for (u32 a = 0; a < used; ++a) {
      at(op.ids, t)[a] = order[a];
      at(op.weights, t)[a] = p[order[a]] / sum;
    }
  }
}

void Reference::run(const Graph&, const op::GroupExperts& op) {
  constexpr u32 kRun = op::GroupExperts::kRun;
  const u32 used = op.ids.cols;
  f64* order = at(op.order, 0);
  u32 place = 0;
  for (u32 expert = 0; expert < op.experts; ++expert) {
    const u32 start = place;
    for (u32 n = 0; n < op.order.cols; ++n) {
      if (at(op.ids, n / used)[n % used] == expert) order[place++] = n;
    }
    for (u32 row = start / kRun + expert, first = start; row < place / kRun + expert + 1; ++row) {
      const u32 count = std::min(kRun, place - first);
      const f64 run[] = {f64(expert), f64(first), f64(count)};
      std::ranges::copy(run, at(op.runs, row));
      first += count;
    }
  }
}

void Reference::run(const Graph&, const op::ExpertMatMul& op) {
  const u32 used = op.ids.cols;
  const u32 rows_per_token = op.x.rows / op.ids.rows;
  const std::vector<f32> scales = vector_or(op.scale_by, op.weight.depth, 1);
  parallel_for(op.out.rows, u64{op.weight.rows} * op.weight.cols, [&](u64 begin, u64 end) {
    std::vector<f32> row(op.weight.cols);
    for (u64 i = begin; i < end; ++i) {
      const u64 t = i / used;
      const auto expert = static_cast<size_t>(at(op.ids, t)[i % used]);
      const f64* x = at(op.x, rows_per_token == 1 ? t : i);
      for (u32 r = 0; r < op.weight.rows; ++r) {
        weight_row(op.weight, expert * op.weight.rows + r, row);
        at(op.out, i)[r] = scales[expert] * dot(row.data(), x, row.size());
      }
    }
  });
}

void Reference::run(const Graph&, const op::ExpertSum& op) {
  const u32 used = op.weights.cols;
  for (u32 t = 0; t < op.out.rows; ++t) {
    std::fill_n(at(op.out, t), op.out.cols, 0.0);
    for (u32 a = 0; a < used; ++a) {
      const f64* y = at(op.y, u64{t} * used + a);
      for (u32 i = 0; i < op.out.cols; ++i) at(op.out, t)[i] += at(op.weights, t)[a] * y[i];
    }
  }
}

void Reference::run(const Graph&, const op::SoftCap& op) {
  for (u32 t = 0; t < op.out.rows; ++t) {
    for (u32 i = 0; i < op.out.cols; ++i) at(op.out, t)[i] = op.cap * std::tanh(at(op.x, t)[i] / op.cap);
  }
}

void Reference::run(const Graph&, const op::TopK& op) {
  const u32 k = op.k();
  std::vector<f32> rank(op.x.cols);
  std::vector<u32> order(op.x.cols);
  for (u32 t = 0; t < op.x.rows; ++t) {
    const std::span x(at(op.x, t), op.x.cols);
    std::ranges::transform(x, rank.begin(), [](f64 v) { return static_cast<f32>(v); });
    std::iota(order.begin(), order.end(), 0);
    const auto before = [&](u32 a, u32 b) {
      if (std::isnan(rank[a]) || std::isnan(rank[b])) {
        return std::pair(!std::isnan(rank[a]), a) < std::pair(!std::isnan(rank[b]), b);
      }
      return rank[a] > rank[b] || (rank[a] == rank[b] && a < b);
    };
    std::partial_sort(order.begin(), order.begin() + k, order.end(), before);
    f64* out = at(op.out, t);
    for (u32 i = 0; i < k; ++i) {
      out[i] = order[i];
      out[k + i] = x[order[i]];
    }
    const f64 top = x[order[0]];
    f64 sum = 0;
    for (const f64 v : x) sum += std::exp(v - top);
    out[2 * k] = std::isfinite(top) ? top + std::log(sum) : top;
  }
}

void Reference::run(const Graph&, const op::Sample& op) {
  const u32 k = op.k();
  const f64* top = at(op.top, 0);
  const f64* draw = at(op.draw, 0);
  const f64 temperature = draw[0], top_k = draw[1], top_p = draw[2], min_p = draw[3], uniform = draw[4];
  const std::span never(draw + op::Sample::kSuppressed, static_cast<size_t>(draw[5]));
  std::vector<u32> pool;  // of candidates, best first
  for (u32 i = 0; i < k && (pool.empty() || static_cast<f64>(pool.size()) < top_k); ++i) {
    if (!std::isinf(top[k + i]) && !std::ranges::contains(never, top[i])) pool.push_back(i);
  }
  u32 choice = pool.empty() ? 0 : pool[0];
  if (temperature > 0 && !pool.empty()) {
    const auto gap = [&](u32 i) { return top[k + i] - top[k + pool[0]]; };
    f64 all = 0, kept = 0, total = 0;
    for (const u32 i : pool) all += std::exp(gap(i));
    size_t count = 0;
    while (count < pool.size() && (count == 0 || top_p >= 1 || kept < top_p * all) &&
           (count == 0 || min_p <= 0 || gap(pool[count]) >= std::log(min_p))) {
      kept += std::exp(gap(pool[count]));
      total += std::exp(gap(pool[count++]) / temperature);
    }
    f64 reached = 0;
    for (size_t i = 0; i < count && (i == 0 || reached < uniform * total); ++i) {
      choice = pool[i];
      reached += std::exp(gap(pool[i]) / temperature);
    }
  }
  std::copy_n(top, 2 * k + 1, at(op.out, 0));
  at(op.out, 0)[2 * k + 1] = *at(op.ids, 0) = top[choice];
  *at(op.positions, 0) += 1;
}

void Reference::run(const Graph&, const op::FullAttention& op) {
  const u32 size = op.head_size;
  parallel_for(op.q.rows, u64{op.k.rows} * op.q.cols * 2, [&](u64 begin, u64 end) {
    std::vector<f64> scores(op.k.rows);
    for (u64 t = begin; t < end; ++t) {
      for (u32 head = 0; head < op.q.cols; head += size) {
        const f64* q = at(op.q, t) + head;
        for (u32 j = 0; j < op.k.rows; ++j) {
          scores[j] = std::inner_product(q, q + size, at(op.k, j) + head, 0.0);
        }
        softmax(scores);
        f64* out = at(op.out, t) + head;
        std::fill_n(out, size, 0.0);
        for (u32 j = 0; j < op.k.rows; ++j) {
          const f64* v = at(op.v, j) + head;
          for (u32 i = 0; i < size; ++i) out[i] += scores[j] * v[i];
        }
      }
    }
  });
}

void Reference::run(const Graph&, const op::ShiftScale& op) {
  const std::vector<f32> shift = vector_or(op.shift, op.x.cols, 0);
  const std::vector<f32> factor = vector_or(op.factor, op.x.cols, 1);
  for (u32 t = 0; t < op.x.rows; ++t) {
    for (u32 i = 0; i < op.x.cols; ++i) {
      at(op.out, t)[i] = (at(op.x, t)[i] + f64{op.sign} * shift[i]) * factor[i];
    }
  }
}

void Reference::run(const Graph&, const op::AveragePool& op) {
  const u32 across = op.width / op.side;
  const f64 scale = f64{op.scale} / (op.side * op.side);
  for (u32 n = 0; n < op.out.rows; ++n) {
    const u32 first = n / across * op.side * op.width + n % across * op.side;
    for (u32 i = 0; i < op.out.cols; ++i) {
      f64 sum = 0;
      for (u32 y = 0; y < op.side; ++y) {
        for (u32 x = 0; x < op.side; ++x) sum += at(op.x, first + y * op.width + x)[i];
      }
      at(op.out, n)[i] = sum * scale;
    }
  }
}

}  // namespace bezel
