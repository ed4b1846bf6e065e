#include "media/video.h"

#include <cmath>
#include <limits>

#include "support.h"

namespace bezel {
namespace {

TEST(Video, TakesFramesEquallyFarApart) {
  const auto frames = sample_frames(100);
  ASSERT_OK(frames);
  ASSERT_EQ(frames->size(), 32u);
  EXPECT_EQ((*frames)[0], 0u);
  EXPECT_EQ((*frames)[1], 3u);   // 3.125
  EXPECT_EQ((*frames)[8], 25u);  // exactly
  EXPECT_EQ((*frames)[31], 96u);
  EXPECT_EQ(*sample_frames(3, 3), (std::vector<u64>{0, 1, 2}));
  EXPECT_EQ(*sample_frames(10, 6), (std::vector<u64>{0, 1, 3, 5, 6, 8}));
  EXPECT_EQ(sample_frames(u64{1} << 32)->back(), (u64{1} << 32) / 32 * 31);
}

TEST(Video, RefusesTooFewFrames) {
  EXPECT_EQ(sample_frames(31).error().message, "The video has 31 frames, fewer than the 32 to take.");
  EXPECT_FALSE(sample_frames(31, 0));
  EXPECT_FALSE(sample_frames(std::numeric_limits<u64>::max()));
}

TEST(Video, FramesAtARate) {
  EXPECT_EQ(*frames_at_rate(240, 24, 1), 10u);
  EXPECT_EQ(*frames_at_rate(250, 30, 2), 16u);  // 16.67
  EXPECT_FALSE(frames_at_rate(10, 24, 1));
  EXPECT_FALSE(frames_at_rate(10, 24, 48));
  for (const f64 bad : {0.0, -1.0, std::nan(""), std::numeric_limits<f64>::infinity()}) {
    EXPECT_FALSE(frames_at_rate(240, bad, 1));
    EXPECT_FALSE(frames_at_rate(240, 24, bad));
  }
}

TEST(Video, TimesAreMinutesAndSeconds) {
  EXPECT_EQ(frame_time(0), "00:00");
  EXPECT_EQ(frame_time(23), "00:00");
  EXPECT_EQ(frame_time(24), "00:01");
  EXPECT_EQ(frame_time(1950, 30), "01:05");
  EXPECT_EQ(frame_time(100 * 60, 1), "100:00");
  EXPECT_EQ(frame_time(48, 0), "00:02");  // unknown: 24 a second
  EXPECT_EQ(frame_time(48, std::nan("")), "00:02");
  EXPECT_FALSE(frame_time(std::numeric_limits<u64>::max(), 1e-300).empty());
}

}  // namespace
}  // namespace bezel
