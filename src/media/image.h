// Pictures as Gemma 4's vision towers take them: any picture is stretched to fill a budget of soft tokens.
#pragma once
#include <vector>

#include "base/result.h"
#include "base/types.h"

namespace bezel {

struct Image {
  u32 width = 0, height = 0;
  std::vector<u8> rgb;  // 3 bytes a pixel, rows from the top
};

struct Size {
  u32 width = 0, height = 0;
  bool operator==(const Size&) const = default;
};

// Larger pictures are refused before memory is taken for them.
inline constexpr u64 kMaxImagePixels = u64{256} << 20;
inline constexpr u32 kMaxImageSide = 1u << 20;

// A budget is the largest number of soft tokens of one picture. The models were trained with five.
inline constexpr u32 kDefaultImageBudget = 280;
Status check_budget(u32 budget);

// The size whose patches fill the budget, in the source's proportions as far as whole tokens allow. One token
// is pool x pool patches of patch x patch pixels, so both sides are multiples of patch * pool.
Result<Size> target_size(Size source, u32 budget, u32 patch = 16, u32 pool = 3);

// An error if the size is empty or above the limits; `what` begins the message, as in "The picture".
Status check_image_size(Size size, const char* what);

// Bicubic as PyTorch resizes bytes (a = -0.5, widened when making smaller), across first and then down,
// rounded to bytes in between. All in whole numbers: the same bytes on every platform.
Result<Image> resize(const Image& image, Size size);

}  // namespace bezel
