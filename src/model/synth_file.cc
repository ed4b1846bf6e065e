#include "model/synth_file.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "io/output_file.h"

namespace bezel {
namespace {

// The type that llama.cpp falls back to where a row is no multiple of the block.
DType fitting(DType type, u64 cols) {
  if (cols % dtype_info(type).block_elements == 0) return type;
  const DType fallback = type == DType::kQ4_K ? DType::kQ5_0 : DType::kQ8_0;
  return cols % 32 == 0 ? fallback : DType::kF16;
}

}  // namespace

DType tower_type(DType type) {
  constexpr DType kUsed[] = {DType::kF32, DType::kF16, DType::kBF16, DType::kQ8_0};
  return std::ranges::contains(kUsed, type) ? type : DType::kF16;
}

void SynthFile::linear(const std::string& name, DType type, std::vector<u64> ne, u32 inputs) {
  u64 cols = 1;
  for (u32 i = 0; i < inputs; ++i) cols *= ne[i];
  const f32 sd = 1 / std::sqrt(static_cast<f32>(cols));
  matrix(name, type, std::move(ne), sd);
}

void SynthFile::matrix(const std::string& name, DType type, std::vector<u64> ne, f32 sd) {
  type = fitting(type, ne[0]);
  writer_.add_tensor(name, type, ne);
  contents_.push_back({.values = {}, .deviation = sd});
}

void SynthFile::vector(const std::string& name, u32 count, f32 centre) {
  std::vector<f32> values(count);
  for (f32& v : values) v = centre * static_cast<f32>(0.8 + 0.4 * random_.uniform());
  constant(name, std::move(values));
}

void SynthFile::constant(const std::string& name, std::vector<f32> values) {
  const u64 ne[] = {values.size()};
  writer_.add_tensor(name, DType::kF32, ne);
  contents_.push_back({.values = std::move(values)});
}

void SynthFile::clamped(const std::string& name, DType type, u32 in, u32 out) {
  linear(name + ".weight", type, {in, out});
  for (const auto& [which, bound] : {std::pair{".input_min", -8.0f},
                                     {".input_max", 8.0f},
                                     {".output_min", -12.0f},
                                     {".output_max", 12.0f}})
    constant(name + which, {bound});
}

Status SynthFile::write(const std::string& path, const std::function<bool(u64, u64)>& progress) {
  auto file = TRY(OutputFile::create(path));
  const auto header = writer_.header();
  TRY(file.write(header));
  const u64 total = header.size() + writer_.data_bytes();
  u64 done = header.size();
  std::vector<std::byte> chunk;
  const auto& placed = writer_.tensors();
  for (std::size_t i = 0; i < placed.size(); ++i) {
    const u64 next = i + 1 < placed.size() ? placed[i + 1].offset : writer_.data_bytes();
    u64 left = placed[i].bytes;
    // Blocks must not be cut: whole blocks of every type fit this.
    const u64 block = dtype_info(placed[i].type).block_bytes;
    const u64 most = (u64{8} << 20) / block * block;
    while (left > 0) {
      chunk.resize(static_cast<std::size_t>(std::min(left, most)));
      fill(placed[i].type, contents_[i], chunk);
      TRY(file.write(chunk));
      left -= chunk.size();
      done += chunk.size();
      if (progress && !progress(done, total))
        return fail(ErrorKind::kCancelled, "Writing {} was stopped.", path);
    }
    const std::vector<std::byte> padding(static_cast<std::size_t>(next - placed[i].offset - placed[i].bytes));
    TRY(file.write(padding));
    done += padding.size();
  }
  return file.finish();
}

void SynthFile::fill(DType type, const Content& content, MutableBytes out) {
  if (!content.values.empty()) {
    std::ranges::copy(std::as_bytes(std::span(content.values)), out.begin());
    return;
  }
  // One pool of blocks for each type and spread; making it costs more than using it.
  auto [pool, fresh] =
      pools_.try_emplace({type, content.deviation}, type, content.deviation, seed_ + pools_.size());
  pool->second.fill(out);
}

}  // namespace bezel
