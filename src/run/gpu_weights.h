// Weights from a file to a GPU, a few MiB at a time.
#pragma once
#include "base/task.h"
#include "gguf/gguf.h"
#include "graph/device_weights.h"
#include "model/text_model.h"
#include "run/backend.h"

namespace bezel {

// The heap holds one chunk at a time, whatever the model's size. Decides where the model's per-layer table is
// kept.
Task<Result<DeviceWeights>> load_device_weights(Device& device, Gguf& file, TextModel& model,
                                                const LoadOptions& options);

}  // namespace bezel
