// Weights from a file to a GPU, a few MiB at a time.
#pragma once
#include "base/task.h"
#include "gguf/gguf.h"
#include "graph/device_weights.h"
#include "model/text_model.h"
#include "run/backend.h"

namespace bezel {

// The heap holds one chunk at a time, whatever the model's size. Decides where the model's per-layer table is
// kept. `allocated` is called when there is room for all but that table, and before anything is read.
Task<Result<DeviceWeights>> load_device_weights(Device& device, Gguf& file, TextModel& model,
                                                const LoadOptions& options, bool relays,
                                                const std::function<Status(const DeviceWeights&)>& allocated);

// Queries, keys and values of a layer, which decoding multiplies in one dispatch, next to each other. The
// tensors have a form and no tiles; those that cannot lie so get none here.
Status place_projections(Device& device, const TextModel& model, std::vector<DeviceWeight>& tensors);
// And before that: what decoding multiplies between two layers' attention, with the norms, in one buffer, as
// relays want it (graph/plan.h).
Status place_relays(Device& device, const TextModel& model, std::vector<DeviceWeight>& tensors);

// All of `tensors`, for a graph whose norms without weights have at most `longest_plain_norm` columns.
Task<Result<DeviceWeights>> upload_tensors(Device& device, Gguf& file, std::span<const TensorInfo> tensors,
                                           u32 longest_plain_norm, const LoadOptions& options);

}  // namespace bezel
