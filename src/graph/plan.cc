#include "graph/plan.h"

#include <array>
#include <cmath>
#include <numbers>

#include "base/check.h"
#include "graph/lowering.h"

namespace bezel {
namespace {

// Turns of a rotary pair per position, as a 64-bit fraction of a turn: low word, high word.
std::vector<u32> fixed_point_turns(const std::vector<f64>& frequencies) {
  std::vector<u32> words;
  for (const f64 frequency : frequencies) {
    const f64 turns = frequency / (2 * std::numbers::pi);
    const u64 fraction = static_cast<u64>(std::ldexp(turns - std::floor(turns), 64));
    words.push_back(static_cast<u32>(fraction));
    words.push_back(static_cast<u32>(fraction >> 32));
  }
  return words;
}

}  // namespace

Plan Plan::start(Device& device, const Graph& graph, Arena layout, const Buffer& arena) {
  CHECK(layout.elements * sizeof(f32) <= arena.bytes());
  Plan plan;
  plan.device_ = &device;
  plan.arena_ = &arena;
  plan.layout_ = std::move(layout);
  for (u32 i = 0; i < graph.buffers().size(); ++i) {
    if (graph.buffers()[i].storage == Storage::kInput) plan.inputs_.emplace_back(graph.buffers()[i].index, i);
  }
  return plan;
}

Status Plan::prepare(Device& device, const Graph& graph, Arena layout, const Buffer& arena,
                     const DeviceWeights& weights, PlanOptions options) {
  Plan plan = start(device, graph, std::move(layout), arena);
  plan.tables_.resize(graph.tables());
  return Lowering(device, graph, weights, {}, options, plan).lower();
}

Task<Result<u32>> Plan::relay_groups(Device& device, const Graph& graph, Arena layout, const Buffer& arena,
                                     const DeviceWeights& weights, PlanOptions options) {
  options.relay.groups = 1;
  Plan plan = start(device, graph, std::move(layout), arena);
  plan.tables_.resize(graph.tables());
  const Program meeting = CO_TRY(Lowering(device, graph, weights, {}, options, plan).meeting());
  if (meeting.id() == 0) co_return 0;
  CO_TRY(co_await device.settle());
  CO_TRY(device.run(meeting));
  std::array<u32, 2> came{};
  CO_TRY(co_await device.read(plan.mail_, 0, std::as_writable_bytes(std::span(came))));
  // A software adapter runs them when it has a thread for them, whatever it did just now.
  if (device.info().software) co_return 1;
  co_return came[1] == 0 ? 0 : ~came[1];  // counted down
}

Result<Plan> Plan::build(Device& device, const Graph& graph, Arena layout, const Buffer& arena,
                         const DeviceWeights& weights, std::span<const Buffer> states, PlanOptions options) {
  Plan plan = start(device, graph, std::move(layout), arena);
  for (u32 i = 0; i < graph.tables(); ++i) {
    const auto words = fixed_point_turns(graph.table(i));
    plan.tables_.push_back(TRY(device.make_buffer(words.size() * sizeof(u32), "rotary frequencies")));
    device.write(plan.tables_.back(), 0, std::as_bytes(std::span(words)));
  }
  TRY(Lowering(device, graph, weights, states, options, plan).run());
  return plan;
}

void Plan::write(std::span<const std::vector<f32>> inputs) {
  for (const auto& [number, buffer] : inputs_) {
    if (inputs[number].empty()) continue;
    device_->write(*arena_, layout_.offset[buffer] * sizeof(f32), std::as_bytes(std::span(inputs[number])));
  }
}

Status Plan::run(std::span<const std::vector<f32>> inputs) {
  write(inputs);
  for (const Program& program : programs_) TRY(device_->run(program));
  return {};
}

Result<Download> Plan::run_and_read(std::span<const std::vector<f32>> inputs, const Tensor& row) {
  CHECK(row.rows == 1 && !programs_.empty());
  write(inputs);
  for (std::size_t i = 0; i + 1 < programs_.size(); ++i) TRY(device_->run(programs_[i]));
  const u64 offset = layout_.offset[row.buffer] + row.offset;
  return device_->start_read(arena_->view(offset * sizeof(f32), row.cols * sizeof(f32)), &programs_.back());
}

Task<Status> Plan::run_in_parts(std::span<const std::vector<f32>> inputs,
                                const std::function<bool(u64 done, u64 total)>& progress) {
  write(inputs);
  for (std::size_t i = 0; i < programs_.size(); ++i) {
    if (progress && !progress(i, programs_.size()))
      co_return fail(ErrorKind::kCancelled, "The computation was stopped.");
    CO_TRY(device_->run(programs_[i]));
    CO_TRY(co_await device_->settle());
  }
  co_return Status{};
}

Task<Result<std::vector<u64>>> Plan::profile(std::span<const std::vector<f32>> inputs) {
  write(inputs);
  std::vector<u64> all;
  for (const Program& program : programs_) {
    const auto part = CO_TRY(co_await device_->profile(program));
    all.insert(all.end(), part.begin(), part.end());
  }
  co_return all;
}

Task<Status> Plan::read(const Tensor& x, std::vector<f32>& out) {
  out.resize(std::size_t{x.rows} * x.cols);
  const u64 offset = layout_.offset[x.buffer] + x.offset;
  if (x.stride == x.cols) {
    co_return co_await device_->read(*arena_, offset * sizeof(f32), std::as_writable_bytes(std::span(out)));
  }
  for (u32 r = 0; r < x.rows; ++r) {
    const auto row = std::span(out).subspan(std::size_t{r} * x.cols, x.cols);
    CO_TRY(
        co_await device_->read(*arena_, (offset + r * x.stride) * sizeof(f32), std::as_writable_bytes(row)));
  }
  co_return Status{};
}

}  // namespace bezel
