// Stop strings on streamed text.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace bezel {

// Passes text on until the first stop string is complete, which is cut off. Only a tail that may still become
// a stop string is held back, so the result does not depend on how the text was cut into pieces.
class StopMatcher {
 public:
  explicit StopMatcher(std::vector<std::string> stops);

  // The text that may be shown now. After a stop string: always empty.
  std::string push(std::string_view text);
  bool stopped() const { return stopped_; }
  // What was held back when the stream ended.
  std::string finish();

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace bezel
