#include "run/bench.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>

#include "base/random.h"
#include "kernels/read_bandwidth.wgsl.h"
#include "model/footprint.h"
#include "run/session.h"

namespace bezel {
namespace {

class Stopwatch {
 public:
  f64 seconds() const {
    const std::chrono::duration<f64> passed = std::chrono::steady_clock::now() - start_;
    return std::max(passed.count(), 1e-9);
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

f64 median(std::vector<f64> values) {
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

std::vector<KernelTotal> totals(const PassProfile& profile) {
  std::map<std::string, KernelTotal> by_label;
  for (std::size_t i = 0; i < profile.labels.size(); ++i) {
    KernelTotal& total = by_label[profile.labels[i]];
    total.label = profile.labels[i];
    ++total.dispatches;
    if (!profile.nanoseconds.empty()) {
      total.milliseconds = total.milliseconds.value_or(0) + static_cast<f64>(profile.nanoseconds[i]) * 1e-6;
    }
  }
  std::vector<KernelTotal> out;
  for (auto& [label, total] : by_label) out.push_back(std::move(total));
  std::ranges::stable_sort(out, std::greater{}, [](const KernelTotal& total) {
    return std::pair(total.milliseconds.value_or(0), total.dispatches);
  });
  return out;
}

class Bench {
 public:
  Bench(Engine& engine, Session session, const BenchOptions& options)
      : engine_(engine), session_(std::move(session)), options_(options) {
    Random random(1);
    for (u32 i = 0; i < std::max({options.prompt, options.depth, 1u}); ++i)
      tokens_.push_back(random.below(engine.config().vocab));
  }

  // All of the prompt, until the next token is known.
  Task<Result<BenchPart>> prefill() {
    const auto prompt = std::span(tokens_).first(options_.prompt);
    std::vector<f64> rates;
    for (u32 round = 0; round <= options_.repetitions; ++round) {
      CO_TRY(co_await session_.rewind(0));
      const Stopwatch watch;
      CO_TRY(co_await session_.feed(prompt, options_.go_on, 1));
      // The first round compiles kernels.
      if (round > 0) rates.push_back(options_.prompt / watch.seconds());
    }
    CO_TRY(co_await session_.rewind(0));
    const std::size_t pass = std::min<std::size_t>(prompt.size(), engine_.backend().batch());
    co_return co_await finish(median(std::move(rates)), prompt.first(pass));
  }

  Task<Result<BenchPart>> decode() {
    CO_TRY(co_await session_.rewind(0));
    CO_TRY(co_await session_.feed(std::span(tokens_).first(options_.depth), options_.go_on, 1));
    const Sampler greedy({.temperature = 0});
    std::vector<f64> rates;
    for (u32 round = 0; round <= options_.repetitions; ++round) {
      u32 token = tokens_[0];
      const u32 count = round == 0 ? std::min(options_.generate, kWarmUp) : options_.generate;
      const Stopwatch watch;
      for (u32 i = 0; i < count; ++i) {
        if (options_.go_on && !options_.go_on())
          co_return fail(ErrorKind::kCancelled, "The measurement was stopped.");
        CO_TRY(co_await session_.decode(token, 1, greedy, i + 1 < count));
        token = session_.candidates().best[0].id;
      }
      if (round > 0) rates.push_back(count / watch.seconds());
      CO_TRY(co_await session_.rewind(options_.depth));
    }
    co_return co_await finish(median(std::move(rates)), std::span(tokens_).first(1));
  }

 private:
  static constexpr u32 kWarmUp = 8;

  // Profiles a pass over `ids` from where the session is.
  Task<Result<BenchPart>> finish(f64 rate, std::span<const u32> ids) {
    const PassProfile profile = CO_TRY(co_await session_.profile(ids, 1));
    co_return BenchPart{.tokens_per_second = rate,
                        .pass_tokens = static_cast<u32>(ids.size()),
                        .dispatches = static_cast<u32>(profile.labels.size()),
                        .kernels = totals(profile)};
  }

  Engine& engine_;
  Session session_;
  const BenchOptions& options_;
  std::vector<u32> tokens_;
};

// As large as the device allows, within reason: a buffer that fits a cache would measure the cache.
Result<Buffer> large_buffer(Device& device) {
  u64 bytes = device.info().software ? u64{16} << 20 : u64{1} << 30;
  bytes = std::min({bytes, device.info().max_binding, device.info().max_buffer}) / 4096 * 4096;
  while (true) {
    auto buffer = device.make_buffer(bytes, "read bandwidth");
    if (buffer || buffer.error().kind != ErrorKind::kMemory || bytes < u64{32} << 20) return buffer;
    bytes = bytes / 2 / 4096 * 4096;
  }
}

// `change` makes another input of the last one, of the same size: towers remember what they have seen.
template <class Input, class Change, class Encode>
Task<Result<EncoderReport>> bench_encoder(Input input, Change change, Encode encode, BenchOptions options) {
  EncoderReport report;
  std::vector<f64> preparing, encoding;
  for (u32 round = 0; round <= options.repetitions; ++round) {
    const Stopwatch watch;
    std::optional<f64> begun;
    const auto soft = CO_TRY(co_await encode(input, [&](u64, u64) {
      if (!begun) begun = watch.seconds();
      return !options.go_on || options.go_on();
    }));
    const f64 all = watch.seconds();
    report.tokens = soft->count;
    if (round == 0) {
      report.first = all;
    } else {
      preparing.push_back(begun.value_or(0));
      encoding.push_back(all - begun.value_or(0));
    }
    change(input);
  }
  report.prepare = median(std::move(preparing));
  report.encode = median(std::move(encoding));
  co_return report;
}

}  // namespace

Task<Result<EncoderReport>> bench_picture(Towers& towers, Image picture, u32 budget, BenchOptions options) {
  const auto change = [](Image& image) {
    for (u8& value : image.rgb) ++value;
  };
  const auto encode = [&towers, budget](const Image& image, Progress progress) {
    return towers.see(image, budget, std::move(progress));
  };
  co_return co_await bench_encoder(std::move(picture), change, encode, std::move(options));
}

Task<Result<EncoderReport>> bench_recording(Towers& towers, Clip clip, BenchOptions options) {
  const auto change = [](Clip& sound) {
    for (f32& value : sound.samples) value *= 0.99f;
  };
  const auto encode = [&towers](const Clip& sound, Progress progress) {
    return towers.hear(sound, std::move(progress));
  };
  co_return co_await bench_encoder(std::move(clip), change, encode, std::move(options));
}

Task<Result<f64>> read_bandwidth(Device& device) {
  const Buffer data = CO_TRY(large_buffer(device));
  const Buffer out = CO_TRY(device.make_buffer(16, "read bandwidth"));
  const wgsl::read_bandwidth::Params params{static_cast<u32>(data.bytes() / 16)};
  Dispatch dispatch;
  dispatch.pipeline = CO_TRY(device.pipeline(wgsl::read_bandwidth::source, "read_bandwidth"));
  dispatch.params.resize(sizeof(params));
  std::memcpy(dispatch.params.data(), &params, sizeof(params));
  for (const BufferView& view : wgsl::read_bandwidth::Io{out.view(), data.view()}.views())
    dispatch.bindings.push_back(view);
  dispatch.grid.x = std::min(4096u, (params.count + 255) / 256);
  // Often enough that launching and waiting do not count.
  const u32 sweeps = device.info().software ? 4 : 32;
  const Program program = CO_TRY(device.make_program(std::vector(sweeps, dispatch)));
  CO_TRY(co_await device.settle());
  std::vector<f64> rates;
  for (int round = 0; round <= 3; ++round) {
    std::array<std::byte, 4> done{};
    const Stopwatch watch;
    CO_TRY(device.run(program));
    CO_TRY(co_await device.read(out, 0, done));
    if (round > 0) rates.push_back(static_cast<f64>(data.bytes()) * sweeps / watch.seconds());
  }
  co_return median(std::move(rates));
}

Task<Result<BenchReport>> bench(Engine& engine, Device* device, BenchOptions options) {
  const u64 longest = std::max<u64>(options.prompt, u64{options.depth} + options.generate);
  if (options.prompt == 0 || options.generate == 0 || options.repetitions == 0) {
    co_return invalid(
        "There is nothing to measure: prompt, generated tokens and repetitions must be above 0.");
  }
  if (longest > engine.config().context) {
    co_return invalid("{} tokens are to be measured, but the model's context has {}.", longest,
                      engine.config().context);
  }
  BenchReport report;
  {
    Bench measured(engine, CO_TRY(Session::create(engine.backend(), static_cast<u32>(longest))), options);
    report.prefill = CO_TRY(co_await measured.prefill());
    report.decode = CO_TRY(co_await measured.decode());
  }
  report.bytes_per_token =
      footprint(engine.file(), engine.backend().model(), engine.backend().batch()).bytes_per_token;
  if (device != nullptr) {
    report.read_bandwidth = CO_TRY(co_await read_bandwidth(*device));
    report.bandwidth_share =
        static_cast<f64>(report.bytes_per_token) * report.decode.tokens_per_second / *report.read_bandwidth;
  }
  co_return report;
}

}  // namespace bezel
