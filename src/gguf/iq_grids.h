// The lattice grids of the IQ types, unpacked: a row is what one code word stands for.
#pragma once
#include <array>

#include "base/types.h"

namespace bezel {

template <std::size_t kRows, std::size_t kLanes>
using IqGrid = std::array<std::array<i8, kLanes>, kRows>;

struct IqGrids {
  IqGrid<256, 8> iq2xxs;
  IqGrid<512, 8> iq2xs;
  IqGrid<1024, 8> iq2s;
  IqGrid<256, 4> iq3xxs;
  IqGrid<512, 4> iq3s;
  IqGrid<2048, 8> iq1s;
};

// Unpacked on first use: the packed form is a quarter of the size, which a web page has to download.
const IqGrids& iq_grids();

}  // namespace bezel
