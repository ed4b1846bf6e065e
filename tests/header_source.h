// For tests: model files of any size of which only the header exists.
#pragma once
#include <algorithm>
#include <bit>

#include "gguf/gguf.h"
#include "gguf/writer.h"

namespace bezel {

// Bytes after the header read as one float, again and again.
class HeaderSource final : public Source {
 public:
  HeaderSource(const GgufWriter& writer, f32 fill)
      : header_(writer.header()), size_(header_.size() + writer.data_bytes()), fill_(fill) {}
  u64 size() const override { return size_; }
  const std::string& name() const override { return name_; }
  Task<Status> read(u64 offset, MutableBytes out) override {
    if (offset > size_ || out.size() > size_ - offset) co_return past_the_end(*this, offset, out.size());
    const auto pattern = std::bit_cast<std::array<std::byte, 4>>(fill_);
    for (u64 i = 0; i < out.size(); ++i) {
      const u64 at = offset + i;
      out[i] = at < header_.size() ? header_[at] : pattern[at % 4];
    }
    co_return Status{};
  }

 private:
  std::vector<std::byte> header_;
  u64 size_;
  f32 fill_;
  std::string name_ = "model.gguf";
};

inline Result<Gguf> open_header(const GgufWriter& writer, f32 fill = 1) {
  std::vector<std::unique_ptr<Source>> parts;
  parts.push_back(std::make_unique<HeaderSource>(writer, fill));
  return run_now(Gguf::open(std::move(parts)));
}

}  // namespace bezel
