// From a picture's file to its pixels.
#pragma once
#include "base/result.h"
#include "media/image.h"

namespace bezel {

// PNG, JPEG, BMP, and the first picture of a GIF; upright as the camera's orientation says. Transparency is
// dropped, not blended: the colours below it stay. On the web this is the page's work and here an error.
Result<Image> decode_image(Bytes file);

}  // namespace bezel
