#include "run/gpu_weights.h"

#include <algorithm>
#include <cstring>

#include "gguf/quant.h"
#include "graph/wide_form.h"
#include "run/per_layer_rows.h"

namespace bezel {
namespace {

constexpr u64 kChunk = 4 << 20;
constexpr u64 kMostOnItsWay = 64 << 20;  // written, but perhaps not yet on the GPU

DeviceWeight device_form(const TensorInfo& info, bool as_in_file) {
  return as_in_file ? table_weight(info.type, info.ne[0], info.rows())
                    : product_weight(info.type, info.ne[0], info.rows());
}

u64 largest_piece(const Device& device) {
  return std::min({device.info().max_binding, device.info().max_buffer, u64{1} << 31});
}

class Uploader {
 public:
  Uploader(Device& device, Gguf& file, const LoadOptions& options, u64 total)
      : device_(device), file_(file), options_(options), total_(total) {}

  // Room for it, in this form.
  Status allocate(const TensorInfo& info, DeviceWeight& out) {
    const u64 row_bytes = out.row_bytes;
    // The unit that may not be cut: a row, or one matrix of a stack.
    const u64 unit_rows = info.ne[2] > 1 ? info.ne[1] : 1;
    const u32 units = static_cast<u32>(info.rows() / unit_rows);
    const u64 unit_bytes = row_bytes * unit_rows;
    const u64 most = largest_piece(device_);
    if (unit_bytes > most) {
      return fail(ErrorKind::kMemory,
                  "Tensor '{}' needs {} bytes in one piece, but the GPU binds at most {}.", info.name,
                  unit_bytes, most);
    }
    for (const auto& [first, count] : cut(units, static_cast<u32>(most / unit_bytes))) {
      out.tiles.push_back({TRY(device_.make_buffer(count * unit_bytes, info.name)), first, count});
    }
    return {};
  }

  // What is in the file, to where there is room for it.
  Task<Status> upload(const TensorInfo& info, DeviceWeight& out) {
    const bool converts = out.type != info.type || out.row_bytes != info.row_bytes();
    const u64 unit_rows = info.ne[2] > 1 ? info.ne[1] : 1;
    for (const auto& tile : out.tiles)
      CO_TRY(co_await fill(info, out, tile, tile.first * unit_rows, tile.count * unit_rows, converts));
    if (info.elements() == 1) out.scalar = scalar_;
    co_return Status{};
  }

  Task<Result<DeviceWeight>> allocate_and_upload(const TensorInfo& info, bool as_in_file) {
    DeviceWeight out = device_form(info, as_in_file);
    CO_TRY(allocate(info, out));
    CO_TRY(co_await upload(info, out));
    co_return out;
  }

 private:
  // Rows [first, first + count) of the tensor into the tile.
  Task<Status> fill(const TensorInfo& info, const DeviceWeight& weight, const DeviceWeight::Tile& tile,
                    u64 first, u64 count, bool converts) {
    const u64 source_row = info.row_bytes();
    // Whole rows at a time, and pieces whose length is a multiple of 4 except at the very end.
    const u64 rows_at_once = std::max<u64>(4, kChunk / std::max<u64>(source_row, weight.row_bytes) / 4 * 4);
    for (u64 row = 0; row < count; row += rows_at_once) {
      const u64 rows = std::min(rows_at_once, count - row);
      source_.resize(static_cast<std::size_t>(rows * source_row));
      CO_TRY(co_await file_.read(info, (first + row) * source_row, source_));
      const std::vector<std::byte>& ready = weight.wide ? widen(info, weight, rows)
                                            : converts  ? convert(info, weight, rows)
                                                        : source_;
      write(*tile.buffer, tile.offset + row * weight.row_bytes, ready);
      done_ += source_.size();
      on_its_way_ += ready.size();
      if (on_its_way_ >= kMostOnItsWay) {
        on_its_way_ = 0;
        CO_TRY(co_await device_.settle());
      }
      if (options_.progress && !options_.progress(done_, total_)) {
        co_return fail(ErrorKind::kCancelled, "Loading was stopped.");
      }
    }
    co_return Status{};
  }

  const std::vector<std::byte>& convert(const TensorInfo& info, const DeviceWeight& weight, u64 rows) {
    const auto cols = static_cast<std::size_t>(info.ne[0]);
    const auto source_row = static_cast<std::size_t>(info.row_bytes());
    std::vector<f32> values(weight.row_bytes / dtype_info(weight.type).block_bytes);  // zero beyond `cols`
    converted_.resize(static_cast<std::size_t>(rows * weight.row_bytes));
    for (std::size_t r = 0; r < rows; ++r) {
      dequantize(info.type, Bytes(source_).subspan(r * source_row, source_row),
                 std::span(values).first(cols));
      quantize(weight.type, values, MutableBytes(converted_).subspan(r * weight.row_bytes, weight.row_bytes));
      scalar_ = values[0];
    }
    return converted_;
  }

  const std::vector<std::byte>& widen(const TensorInfo& info, const DeviceWeight& weight, u64 rows) {
    const auto source_row = static_cast<std::size_t>(info.row_bytes());
    converted_.resize(static_cast<std::size_t>(rows * weight.row_bytes));
    for (std::size_t r = 0; r < rows; ++r)
      widen_row(weight.type, Bytes(source_).subspan(r * source_row, source_row),
                MutableBytes(converted_).subspan(r * weight.row_bytes, weight.row_bytes));
    return converted_;
  }

  void write(const Buffer& buffer, u64 offset, const std::vector<std::byte>& bytes) {
    const std::size_t even = bytes.size() / 4 * 4;
    device_.write(buffer, offset, Bytes(bytes).first(even));
    if (even == bytes.size()) return;
    std::array<std::byte, 4> tail{};
    std::ranges::copy(Bytes(bytes).subspan(even), tail.begin());
    device_.write(buffer, offset + even, tail);
  }

  Device& device_;
  Gguf& file_;
  const LoadOptions& options_;
  u64 total_, done_ = 0, on_its_way_ = 0;
  std::vector<std::byte> source_, converted_;
  f32 scalar_ = 1;
};

Task<Result<Buffer>> make_ones(Device& device, u64 count) {
  Buffer ones = CO_TRY(device.make_buffer(count * sizeof(f32), "ones"));
  const std::vector<f32> values(static_cast<std::size_t>(count), 1.0f);
  device.write(ones, 0, std::as_bytes(std::span(values)));
  co_return ones;
}

u64 longest_vector(std::span<const TensorInfo> tensors) {
  u64 longest = 1;
  for (const TensorInfo& info : tensors) {
    if (info.rows() == 1) longest = std::max(longest, info.ne[0]);
  }
  return longest;
}

}  // namespace

Status place_projections(Device& device, const TextModel& model, std::vector<DeviceWeight>& tensors) {
  for (const LayerWeights& layer : model.layers) {
    std::vector<Unplaced> weights;
    for (const Linear& linear : {layer.attn_v, layer.attn_k, layer.attn_q})  // the graph's order
      if (linear && tensors[linear.weight.index].tiles.empty())
        weights.push_back({&tensors[linear.weight.index], linear.weight.rows});
    TRY(place_together(device, weights, largest_piece(device)));
  }
  return {};
}

Status place_relays(Device& device, const TextModel& model, std::vector<DeviceWeight>& tensors) {
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    std::vector<Unplaced> weights;
    const auto take = [&](const Weight& w) {
      if (w) weights.push_back({&tensors[w.index], w.rows});
    };
    const LayerWeights& layer = model.layers[i];
    for (const Weight& w : {layer.post_attention_norm, layer.ffn_norm, layer.post_ffw_norm, layer.post_norm})
      take(w);
    for (const Linear& linear :
         {layer.attn_output, layer.ffn_gate, layer.ffn_up, layer.ffn_down, layer.inp_gate, layer.proj})
      take(linear.weight);
    if (i + 1 < model.layers.size()) {
      const LayerWeights& next = model.layers[i + 1];
      take(next.attn_norm);
      for (const Linear& linear : {next.attn_v, next.attn_k, next.attn_q}) take(linear.weight);
    }
    TRY(place_in_one(device, weights, largest_piece(device)));
  }
  return {};
}

Task<Result<DeviceWeights>> upload_tensors(Device& device, Gguf& file, std::span<const TensorInfo> tensors,
                                           u32 longest_plain_norm, const LoadOptions& options) {
  u64 total = 0;
  for (const TensorInfo& info : tensors) total += info.bytes;
  DeviceWeights weights;
  weights.ones =
      CO_TRY(co_await make_ones(device, std::max<u64>(longest_plain_norm, longest_vector(tensors))));
  Uploader uploader(device, file, options, total);
  for (const TensorInfo& info : tensors)
    weights.tensors.push_back(CO_TRY(co_await uploader.allocate_and_upload(info, false)));
  CO_TRY(co_await device.settle());
  co_return weights;
}

Task<Result<DeviceWeights>> load_device_weights(
    Device& device, Gguf& file, TextModel& model, const LoadOptions& options, bool relays,
    const std::function<Status(const DeviceWeights&)>& allocated) {
  const u32 table = model.per_layer_token_embd.index;
  const auto form_of = [&](u32 i) {
    return device_form(model.tensors[i], i == table || options.gpu.file_layout);
  };
  std::vector<u64> bytes;
  for (u32 i = 0; i < model.tensors.size(); ++i)
    bytes.push_back(model.tensors[i].rows() * form_of(i).row_bytes);
  LoadOptions chosen = options;
  if (model.per_layer_token_embd && options.per_layer_table == PerLayerTable::kAuto &&
      form_of(table).row_bytes > largest_piece(device)) {
    chosen.per_layer_table = PerLayerTable::kSource;
  }
  CO_TRY(choose_per_layer_table(model, bytes, chosen));

  DeviceWeights weights;
  u64 total = 0, longest = longest_vector(model.tensors);
  for (u32 i = 0; i < model.tensors.size(); ++i) {
    if (model.loads(i)) total += model.tensors[i].bytes;
  }
  for (const LayerConfig& layer : model.config.layers) longest = std::max<u64>(longest, layer.head_size);
  longest = std::max<u64>(longest, model.config.experts);
  weights.ones = CO_TRY(co_await make_ones(device, longest));
  Uploader uploader(device, file, options, total);
  weights.tensors.resize(model.tensors.size());
  for (u32 i = 0; i < model.tensors.size(); ++i)
    if (i != table) weights.tensors[i] = form_of(i);
  if (relays) CO_TRY(place_relays(device, model, weights.tensors));
  CO_TRY(place_projections(device, model, weights.tensors));
  for (u32 i = 0; i < model.tensors.size(); ++i)
    if (i != table && weights.tensors[i].tiles.empty())
      CO_TRY(uploader.allocate(model.tensors[i], weights.tensors[i]));
  CO_TRY(co_await device.settle());  // no room? Then say so before gigabytes are read
  CO_TRY(allocated(weights));
  for (u32 i = 0; i < model.tensors.size(); ++i)
    if (i != table) CO_TRY(co_await uploader.upload(model.tensors[i], weights.tensors[i]));
  CO_TRY(co_await device.settle());
  if (!model.per_layer_token_embd || !model.loads(table)) co_return weights;
  // The table comes last: if it turns out that there is no room for it, everything else is there already.
  auto uploaded = co_await uploader.allocate_and_upload(model.tensors[table], true);
  if (const Status settled = co_await device.settle(); !settled) uploaded = std::unexpected(settled.error());
  if (uploaded) {
    weights.tensors[table] = std::move(*uploaded);
  } else if (uploaded.error().kind == ErrorKind::kMemory && chosen.per_layer_table == PerLayerTable::kAuto) {
    model.per_layer_rows_from_file = true;
  } else {
    co_return std::unexpected(uploaded.error());
  }
  co_return weights;
}

}  // namespace bezel
