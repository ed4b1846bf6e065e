// Any bytes give a picture or a recording that can be used, or an error in a full sentence.
#include "base/check.h"
#include "media/decode.h"
#include "media/decode_audio.h"

namespace bezel {
namespace {

void check_image(Bytes bytes) {
  const auto image = decode_image(bytes);
  if (!image) {
    CHECK(image.error().message.ends_with('.'));
    return;
  }
  CHECK(image->width > 0 && image->height > 0);
  CHECK(image->rgb.size() == u64{image->width} * image->height * 3);
}

void check_audio(Bytes bytes) {
  const auto clip = decode_audio(bytes);
  if (!clip) {
    CHECK(clip.error().message.ends_with('.'));
    return;
  }
  CHECK(check_clip(*clip).has_value() && clip->samples.size() % clip->channels == 0);
  CHECK(clip->samples.size() <= u64{clip->rate} * clip->channels * kDecodedSeconds);
  const auto audio = prepare_audio(*clip);
  CHECK(!audio || (audio->samples.size() >= kMinAudioSamples && audio->samples.size() <= kMaxAudioSamples));
}

}  // namespace
}  // namespace bezel

extern "C" int LLVMFuzzerTestOneInput(const bezel::u8* data, std::size_t size) {
  const bezel::Bytes bytes = std::as_bytes(std::span(data, size));
  bezel::check_image(bytes);
  bezel::check_audio(bytes);
  return 0;
}
