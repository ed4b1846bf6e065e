// A prompt as a list of control tokens and plain text. The two never mix: what a user typed is always plain
// text, even where it spells a control token, so it cannot end a turn or forge a tool result.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bezel {

namespace marker {
inline constexpr std::string_view kBos = "<bos>";
inline constexpr std::string_view kEos = "<eos>";
inline constexpr std::string_view kTurn = "<|turn>";
inline constexpr std::string_view kTurnEnd = "<turn|>";
inline constexpr std::string_view kThink = "<|think|>";
inline constexpr std::string_view kChannel = "<|channel>";
inline constexpr std::string_view kChannelEnd = "<channel|>";
inline constexpr std::string_view kTool = "<|tool>";
inline constexpr std::string_view kToolEnd = "<tool|>";
inline constexpr std::string_view kCall = "<|tool_call>";
inline constexpr std::string_view kCallEnd = "<tool_call|>";
inline constexpr std::string_view kResponse = "<|tool_response>";
inline constexpr std::string_view kResponseEnd = "<tool_response|>";
inline constexpr std::string_view kQuote = "<|\"|>";
inline constexpr std::string_view kImage = "<|image|>";
inline constexpr std::string_view kAudio = "<|audio|>";
inline constexpr std::string_view kVideo = "<|video|>";
// Around the soft tokens that take a placeholder's place.
inline constexpr std::string_view kImageBegin = "<|image>";
inline constexpr std::string_view kImageEnd = "<image|>";
inline constexpr std::string_view kAudioBegin = "<|audio>";
inline constexpr std::string_view kAudioEnd = "<audio|>";
}  // namespace marker

struct ChatItem {
  bool special = false;  // the control token spelled `text`, otherwise plain text
  std::string text;

  friend bool operator==(const ChatItem&, const ChatItem&) = default;
};

// Collects items; neighbouring plain text becomes one item, as the tokenizer must see it whole.
class ItemWriter {
 public:
  void special(std::string_view name) { items_.push_back({true, std::string(name)}); }
  void text(std::string_view text) {
    if (text.empty()) return;
    if (items_.empty() || items_.back().special) items_.push_back({false, {}});
    items_.back().text += text;
  }
  void quoted(std::string_view value) {
    special(marker::kQuote);
    text(value);
    special(marker::kQuote);
  }

  // The placeholder of a message's part.
  void media(std::string_view placeholder, const nlohmann::json& part) {
    special(placeholder);
    media_.push_back(&part);
  }

  const std::vector<ChatItem>& items() const { return items_; }
  const std::vector<const nlohmann::json*>& media() const { return media_; }  // in the placeholders' order
  std::vector<ChatItem> take() { return std::exchange(items_, {}); }

 private:
  std::vector<ChatItem> items_;
  std::vector<const nlohmann::json*> media_;
};

// The prompt as one string, for display and for comparison with other engines.
inline std::string join(std::span<const ChatItem> items) {
  std::string text;
  for (const ChatItem& item : items) text += item.text;
  return text;
}

}  // namespace bezel
