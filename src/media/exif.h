// Which way up a photograph is: cameras write the sensor's rows and say how to turn them.
#pragma once
#include "media/image.h"

namespace bezel {

// The orientation, 1 to 8, that a JPEG's EXIF block states; 1 (upright) where it states none or is broken.
u32 jpeg_orientation(Bytes file);

// The picture turned and mirrored so that orientation 1 holds.
Image upright(Image image, u32 orientation);

}  // namespace bezel
