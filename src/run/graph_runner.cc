#include "run/graph_runner.h"

#include "base/memory.h"
#include "graph/plan.h"
#include "graph/reference.h"
#include "run/cpu_weights.h"
#include "run/gpu_weights.h"

namespace bezel {
namespace {

// So many dispatches of a tower take a fraction of a second on a slow GPU; a system may end what takes
// longer.
constexpr u32 kDispatchesAtOnce = 16;

class CpuRunner final : public GraphRunner {
 public:
  Task<Status> load(Gguf& file, std::span<const TensorInfo> tensors, const LoadOptions& options) {
    return weights_.load(file, tensors, [](u32) { return true; }, options);
  }

  Task<Result<std::vector<f32>>> run(const Graph& graph, std::vector<std::vector<f32>> inputs,
                                     std::string_view output, const Progress& progress) override {
    const u64 bytes = Reference::bytes_of(graph);
    if (bytes > memory_limit()) {
      co_return fail(ErrorKind::kMemory, "The encoder takes {} bytes, more than there may be ({} bytes).",
                     bytes, memory_limit());
    }
    std::vector<std::vector<f64>> wide;
    for (const auto& input : inputs) wide.emplace_back(input.begin(), input.end());
    Reference reference(weights_);
    if (!reference.run(graph, wide, {}, progress))
      co_return fail(ErrorKind::kCancelled, "The encoder was stopped.");
    std::vector<f32> out;
    for (const f64 v : reference.values(*graph.find(output))) out.push_back(static_cast<f32>(v));
    co_return out;
  }

 private:
  CpuWeights weights_;
};

class GpuRunner final : public GraphRunner {
 public:
  explicit GpuRunner(Device& device) : device_(device) {}

  Task<Status> load(Gguf& file, std::span<const TensorInfo> tensors, u32 longest_plain_norm,
                    const LoadOptions& options) {
    weights_ = CO_TRY(co_await upload_tensors(device_, file, tensors, longest_plain_norm, options));
    co_return Status{};
  }

  Task<Result<std::vector<f32>>> run(const Graph& graph, std::vector<std::vector<f32>> inputs,
                                     std::string_view output, const Progress& progress) override {
    Arena layout = lay_out(graph, std::span(&output, 1), 1);
    const u64 bytes = layout.elements * sizeof(f32), most = device_.info().max_binding;
    if (bytes > most) {
      co_return fail(ErrorKind::kMemory,
                     "The encoder's intermediate results take {} bytes, but this GPU binds at most {}; a "
                     "smaller token budget helps.",
                     bytes, most);
    }
    // Its size varies with the picture, and between pictures the memory is better used elsewhere.
    const Buffer arena = CO_TRY(device_.make_buffer(bytes, "encoder arena"));
    Plan plan = CO_TRY(Plan::build(device_, graph, std::move(layout), arena, weights_, {},
                                   {.dispatches_at_once = kDispatchesAtOnce}));
    CO_TRY(co_await device_.settle());  // a kernel that does not compile, or no memory, says so here
    CO_TRY(co_await plan.run_in_parts(inputs, progress));
    std::vector<f32> out;
    CO_TRY(co_await plan.read(*graph.find(output), out));
    co_return out;
  }

 private:
  Device& device_;
  DeviceWeights weights_;
};

}  // namespace

Task<Result<std::unique_ptr<GraphRunner>>> load_graph_runner(Gguf& file, std::span<const TensorInfo> tensors,
                                                             u32 longest_plain_norm, Device* device,
                                                             const Progress& progress) {
  LoadOptions options;
  options.progress = progress;
  if (device != nullptr) {
    auto runner = std::make_unique<GpuRunner>(*device);
    CO_TRY(co_await runner->load(file, tensors, longest_plain_norm, options));
    co_return runner;
  }
  auto runner = std::make_unique<CpuRunner>();
  CO_TRY(co_await runner->load(file, tensors, options));
  co_return runner;
}

}  // namespace bezel
