#include "media/decode_audio.h"

namespace bezel {

Result<Clip> decode_compressed(Bytes) {
  return fail(
      ErrorKind::kUnsupported,
      "The recording is no WAV file. On the web only WAV is read here: the page decodes all other kinds.");
}

}  // namespace bezel
