// A device whose relays fail when a test wants them to, as those of a GPU do that does not run all workgroups
// at the same time: what they give is no number.
#pragma once
#include <limits>
#include <map>
#include <set>
#include <string>

#include "gpu/device.h"
#include "support.h"

namespace bezel {

class SpoilingDevice final : public Device {
 public:
  static constexpr u32 kAll = std::numeric_limits<u32>::max();
  explicit SpoilingDevice(Device& inner) : inner_(inner) {}

  u32 good = kAll;                      // runs of programs with relays that still go well
  u32 relay_runs = 0;                   // of such programs, so far
  std::set<std::string> relay_kernels;  // texts that were asked for

  const DeviceInfo& info() const override { return inner_.info(); }
  Result<Buffer> make_buffer(u64 bytes, std::string_view label) override {
    auto buffer = inner_.make_buffer(bytes, label);
    if (buffer && label == "mail") mails_.insert(buffer->id());
    return buffer;
  }
  void write(const Buffer& buffer, u64 offset, Bytes bytes) override { inner_.write(buffer, offset, bytes); }
  Result<Download> start_read(BufferView from, const Program* first) override {
    if (first != nullptr) prepare(*first);
    return inner_.start_read(from, first);
  }
  Result<u32> pipeline(std::string_view wgsl, std::string_view label) override {
    if (label != "relay") return inner_.pipeline(wgsl, label);
    relay_kernels.emplace(wgsl);
    // The last word of the mail, which an even number of relays does not use, says what to give.
    constexpr std::string_view kGives = "  arena[out / 4u] = value;\n";
    std::string text(wgsl);
    const std::size_t at = text.find(kGives);
    EXPECT_NE(at, std::string::npos);
    text.insert(at,
                "  let spoilt = atomicLoad(&mail[arrayLength(&mail) - 1u]);\n"
                "  if (spoilt != 0u) { value = bitcast<vec4f>(vec4u(spoilt)); }\n");
    return inner_.pipeline(text, label);
  }
  Result<Program> make_program(std::span<const Dispatch> dispatches) override {
    auto program = inner_.make_program(dispatches);
    for (const Dispatch& dispatch : dispatches) {
      for (const BufferView& view : dispatch.bindings)
        if (program && mails_.contains(view.buffer)) mail_of_[program->id()] = view;
    }
    return program;
  }
  Status run(const Program& program) override {
    prepare(program);
    return inner_.run(program);
  }
  Task<Result<std::vector<u64>>> profile(const Program& program) override {
    prepare(program);
    return inner_.profile(program);
  }
  Task<Status> settle() override { return inner_.settle(); }
  u64 allocated() const override { return inner_.allocated(); }
  DeviceCounts counts() const override { return inner_.counts(); }
  void lose() override { inner_.lose(); }

 protected:
  // What was made belongs to the other device; all that is made here is a name for a mail.
  void destroy_buffer(u32) override {}
  void destroy_program(u32) override {}
  Task<Status> finish_read(u32, MutableBytes) override { co_return Status{}; }
  void drop_read(u32) override {}

 private:
  void prepare(const Program& program) {
    const auto found = mail_of_.find(program.id());
    if (found == mail_of_.end()) return;
    ++relay_runs;
    const u32 word = good == 0 ? 0x7fc00000 : 0;
    if (good > 0 && good != kAll) --good;
    const BufferView& mail = found->second;
    inner_.write(Buffer(*this, mail.buffer, mail.bytes), mail.bytes - sizeof(u32),
                 std::as_bytes(std::span(&word, 1)));
  }

  Device& inner_;
  std::set<u32> mails_;
  std::map<u32, BufferView> mail_of_;  // by program
};

}  // namespace bezel
