// The kinds of picture files, each by the library that reads it best.
#pragma once
#include "base/result.h"
#include "media/image.h"

namespace bezel {

Result<Image> decode_png(Bytes file);
Result<Image> decode_jpeg(Bytes file);  // as stored: not yet turned upright

// An error if the size is above the limits, or if so many pixels cannot come out of so few bytes. Asked
// before memory is taken: a small file must not be able to ask for much.
Status check_claimed_size(const char* kind, Size size, Bytes file, u64 pixels_per_byte);

}  // namespace bezel
