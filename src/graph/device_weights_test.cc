// Which weights share a buffer.
#ifndef __wasm__
#include "graph/device_weights.h"

#include "noting_device.h"
#include "support.h"

namespace bezel {
namespace {

// Of each weight the number of its buffer, 0 where it has none, and its offset.
using Places = std::vector<std::pair<u32, u64>>;

struct Wanted {
  DType type;
  u32 rows;
};

Places place(std::initializer_list<Wanted> wanted, u64 most = ~u64{0},
             decltype(&place_together) how = place_together) {
  NotingDevice device(large_gpu());
  std::vector<DeviceWeight> weights;
  for (const Wanted& w : wanted) weights.push_back(product_weight(w.type, 512, 2));
  std::vector<Unplaced> unplaced;
  for (std::size_t i = 0; i < weights.size(); ++i) unplaced.push_back({&weights[i], wanted.begin()[i].rows});
  EXPECT_TRUE(how(device, unplaced, most));
  Places out;
  for (const DeviceWeight& w : weights) {
    const BufferView view = w.tiles.empty() ? BufferView{} : w.tiles[0].view();
    out.emplace_back(view.buffer, view.offset);
  }
  return out;
}

TEST(DeviceWeights, NeighboursOfOneFormLieTogether) {
  constexpr DType kFour = DType::kQ4_K, kSix = DType::kQ6_K;  // rows of 288 and of 448 bytes
  EXPECT_EQ(place({{kFour, 64}, {kFour, 32}, {kFour, 8}}), (Places{{1, 0}, {1, 18432}, {1, 27648}}));
  EXPECT_EQ(place({{kSix, 8}, {kFour, 32}, {kFour, 8}}), (Places{{0, 0}, {1, 0}, {1, 9216}}));
  EXPECT_EQ(place({{kSix, 8}, {kSix, 8}, {kFour, 8}, {kFour, 8}}),
            (Places{{1, 0}, {1, 3584}, {2, 0}, {2, 2304}}));
  EXPECT_EQ(place({{kFour, 8}, {kSix, 8}, {kFour, 8}}), (Places{{0, 0}, {0, 0}, {0, 0}}));
  EXPECT_EQ(place({{kFour, 8}}), (Places{{0, 0}}));
}

TEST(DeviceWeights, OnlyWhatCanBeBoundLiesTogether) {
  constexpr DType kType = DType::kQ4_K;
  EXPECT_EQ(place({{kType, 8}, {kType, 7}, {kType, 8}, {kType, 8}}),
            (Places{{0, 0}, {0, 0}, {1, 0}, {1, 2304}}));
  EXPECT_EQ(place({{kType, 8}, {kType, 8}, {kType, 8}}, 3 * 2304 - 1), (Places{{1, 0}, {1, 2304}, {0, 0}}));
}

TEST(DeviceWeights, AllLieInOneBufferOrNone) {
  constexpr DType kFour = DType::kQ4_K, kSix = DType::kQ6_K, kVector = DType::kF32;
  const auto places = [](u64 most) {
    return place({{kFour, 7}, {kVector, 1}, {kSix, 8}, {kFour, 1}}, most, place_in_one);
  };
  constexpr u64 kAll = 2048 + 2048 + 3584 + 512;  // 7 * 288, 2048, 8 * 448 and 288 bytes, from 256 to 256
  EXPECT_EQ(places(kAll), (Places{{1, 0}, {1, 2048}, {1, 4096}, {1, 7680}}));
  EXPECT_EQ(places(kAll - 1), (Places{{0, 0}, {0, 0}, {0, 0}, {0, 0}}));
  EXPECT_EQ(place({}, kAll, place_in_one), Places{});
}

}  // namespace
}  // namespace bezel
#endif
