#include "text/stop.h"

#include <algorithm>
#include <utility>

namespace bezel {

StopMatcher::StopMatcher(std::vector<std::string> stops) : stops_(std::move(stops)) {
  std::erase(stops_, "");  // would stop before the first character
}

std::string StopMatcher::push(std::string_view text) {
  if (stopped_) return {};
  held_ += text;

  // The one that is complete first wins, as if the text had come byte by byte.
  std::size_t first_end = std::string::npos;
  std::size_t cut = 0;
  for (const std::string& stop : stops_) {
    const std::size_t begin = held_.find(stop);
    if (begin == std::string::npos) continue;
    const std::size_t end = begin + stop.size();
    if (end < first_end || (end == first_end && begin < cut)) {
      first_end = end;
      cut = begin;
    }
  }
  if (first_end != std::string::npos) {
    stopped_ = true;
    std::string shown = std::exchange(held_, {});
    shown.resize(cut);
    return shown;
  }

  std::size_t keep = 0;
  for (const std::string& stop : stops_) {
    for (std::size_t length = std::min(stop.size() - 1, held_.size()); length > keep; --length) {
      if (held_.ends_with(std::string_view(stop).substr(0, length))) keep = length;
    }
  }
  std::string shown = held_.substr(0, held_.size() - keep);
  held_.erase(0, shown.size());
  return shown;
}

std::string StopMatcher::finish() { return std::exchange(held_, {}); }

}  // namespace bezel
