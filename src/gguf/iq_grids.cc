#include "gguf/iq_grids.h"

#include "gguf/iq_grids_data.h"

namespace bezel {
namespace {

template <std::size_t kRows, std::size_t kLanes, std::size_t kValues>
IqGrid<kRows, kLanes> unpack(const std::array<u16, kRows>& packed, const std::array<i8, kValues>& values) {
  constexpr u32 kBits = kLanes == 8 ? 2 : 3;
  IqGrid<kRows, kLanes> grid;
  for (std::size_t row = 0; row < kRows; ++row) {
    for (u32 lane = 0; lane < kLanes; ++lane) {
      grid[row][lane] = values[(packed[row] >> (kBits * lane)) & ((1U << kBits) - 1)];
    }
  }
  return grid;
}

}  // namespace

const IqGrids& iq_grids() {
  static const IqGrids grids = {
      .iq2xxs = unpack<256, 8>(kIq2XxsPacked, kIq2XxsValues),
      .iq2xs = unpack<512, 8>(kIq2XsPacked, kIq2XsValues),
      .iq2s = unpack<1024, 8>(kIq2SPacked, kIq2SValues),
      .iq3xxs = unpack<256, 4>(kIq3XxsPacked, kIq3XxsValues),
      .iq3s = unpack<512, 4>(kIq3SPacked, kIq3SValues),
      .iq1s = unpack<2048, 8>(kIq1SPacked, kIq1SValues),
  };
  return grids;
}

}  // namespace bezel
