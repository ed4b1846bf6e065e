// Where a tuning is kept: tuning.json in the user's folder for caches.
#pragma once
#include <string>
#include <string_view>

#include "base/result.h"
#include "graph/tuning.h"

namespace bezel {

// $XDG_CACHE_HOME/bezel/tuning.json, or in ~/.cache; empty where there is neither.
std::string tuning_path();

// Empty where there is none that can be read.
std::string load_tuning();
Status save_tuning(std::string_view text);
// Adds to what is kept for that device. What is kept for another gives way.
Status keep_tuning(const Tuning& news, const DeviceInfo& info);

}  // namespace bezel
