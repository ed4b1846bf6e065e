// From sound to soft tokens, as a Graph.
#pragma once
#include <vector>

#include "graph/graph.h"
#include "model/audio_model.h"

namespace bezel {

// The graph's inputs. kAudioFrames: rows of config.frame numbers, log-mel features of a conformer, samples
// where there is no encoder. kAudioPositions, of a conformer only: audio_positions().
enum AudioInput : u32 { kAudioFrames = 0, kAudioPositions = 1 };

// How many soft tokens come of `frames` rows of input.
u32 audio_tokens(const AudioConfig& config, u32 frames);

// Sines and cosines of the distances that attention sees, (distances, d), row by row.
std::vector<f32> audio_positions(const AudioConfig& config);

// The pass over a whole recording of `frames` > 0 rows. Its result, named "soft", is (audio_tokens, width of
// the text model). No token depends on frames after its own.
Graph build_audio_graph(const AudioModel& model, u32 frames);

}  // namespace bezel
