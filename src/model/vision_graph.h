// Gemma 4's vision tower as a Graph, and what a picture becomes to be its input.
#pragma once
#include <span>
#include <vector>

#include "base/result.h"
#include "base/task.h"
#include "graph/graph.h"
#include "model/vision_model.h"

namespace bezel {

// The graph's inputs, one row per patch, row by row of the picture: pixels (N, 3 * patch * patch), x and y of
// the patch (N, 2), the sum of the two rows of the position table that belong to it (N, d). kUnified has no
// kVisionGrid.
enum VisionInput : u32 { kVisionPixels = 0, kVisionGrid = 1, kVisionPositionRows = 2 };
constexpr u32 kVisionInputs = 3;

// A picture of so many patches, both multiples of config.pool. The result, (w / pool * h / pool, text width),
// is named "soft". Memory grows with the number of patches, not with its square: on a GPU lay_out() says how
// much it will be, and where that is more than one binding allows, the picture must be smaller.
Graph build_vision_graph(const VisionModel& model, u32 width_patches, u32 height_patches);

constexpr u32 kMostSoftTokens = 1120;  // the largest budget of a published model

// Whether the tower takes a picture of so many pixels, and why not.
Status check_picture(const VisionConfig& config, u32 width, u32 height);

// The inputs by number, for a picture that has been resized already: 8-bit RGB, row by row. Reads the rows of
// the position table that it needs.
Task<Result<std::vector<std::vector<f32>>>> vision_inputs(Gguf& file, const VisionModel& model,
                                                          std::span<const u8> rgb, u32 width, u32 height);

// kVisionPixels alone.
std::vector<f32> vision_pixels(const VisionConfig& config, std::span<const u8> rgb, u32 width, u32 height);

}  // namespace bezel
