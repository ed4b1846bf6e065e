#include "media/decode.h"

namespace bezel {

Result<Image> decode_image(Bytes) {
  return fail(ErrorKind::kUnsupported,
              "On the web pictures are decoded by the page, which passes their pixels.");
}

}  // namespace bezel
