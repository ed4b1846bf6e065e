#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "api/cli.h"
#include "base/format_text.h"
#include "io/source.h"
#include "media/decode.h"
#include "media/decode_audio.h"
#include "media/video.h"

namespace bezel {
namespace {

constexpr u64 kLargestFile = u64{1} << 30;

Result<std::vector<std::byte>> read_whole(const std::string& path) {
  const auto source = TRY(open_file(path));
  if (source->size() > kLargestFile)
    return invalid("{} has {} bytes; at most {} are read.", path, source->size(), kLargestFile);
  std::vector<std::byte> bytes(static_cast<std::size_t>(source->size()));
  TRY(run_now(source->read(0, bytes)));
  return bytes;
}

// What is wrong with a file is said with its name.
template <class T>
Result<T> about(const std::string& path, Result<T> result) {
  if (!result) result.error().message = format_text("{}: {}", path, result.error().message);
  return result;
}

// A line on a terminal that goes away at the end.
class Line {
 public:
  explicit Line(const char* what) : what_(what) {}
  ~Line() {
    if (show_) std::fprintf(stderr, "\r\033[K");
  }
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  Progress progress() {
    return [this](u64 done, u64 total) {
      if (show_) {
        const u64 percent = done * 100 / std::max<u64>(1, total);
        std::fprintf(stderr, "\r%s  %3llu %%", what_, static_cast<unsigned long long>(percent));
      }
      return !interrupted();
    };
  }

 private:
  const char* what_;
  bool show_ = isatty(STDERR_FILENO) != 0;
};

}  // namespace

Result<Image> read_image(const std::string& path) { return about(path, decode_image(TRY(read_whole(path)))); }

Result<Clip> read_recording(const std::string& path) {
  return about(path, decode_audio(TRY(read_whole(path))));
}

Result<Medium> look_at(Towers& towers, const std::string& path, const MediaOptions& media) {
  const Image image = TRY(read_image(path));
  Line line("Looking");
  return Medium{{{"", TRY(about(path, run_now(towers.see(image, media.image_tokens, line.progress()))))}}};
}

Result<Medium> listen_to(Towers& towers, const std::string& path) {
  const Clip clip = TRY(read_recording(path));
  if (is_cut(clip)) {
    std::fprintf(stderr,
                 "bezel: %s is longer than the 30 seconds that the model hears; the rest is left out.\n",
                 path.c_str());
  }
  Line line("Listening");
  return Medium{{{"", TRY(about(path, run_now(towers.hear(clip, line.progress()))))}}};
}

Result<Medium> watch(Towers& towers, const std::string& folder, const MediaOptions& media) {
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.is_regular_file(error)) files.push_back(entry.path().string());
  }
  if (files.empty()) {
    return fail(
        ErrorKind::kNotFound,
        "{} is no folder of frames. Make one of a video with: ffmpeg -i VIDEO -vf fps={} FOLDER/%05d.png",
        folder, media.fps);
  }
  std::ranges::sort(files);
  const u32 count = static_cast<u32>(std::min<std::size_t>(kVideoFrames, files.size()));
  MediaOptions frame = media;
  if (frame.image_tokens == 0) frame.image_tokens = kVideoBudget;
  Medium video;
  for (const u64 index : TRY(sample_frames(files.size(), count))) {
    const Medium picture = TRY(look_at(towers, files[static_cast<std::size_t>(index)], frame));
    video.frames.push_back({frame_time(index, media.fps), picture.frames[0].tokens});
  }
  return video;
}

void add_media_options(CLI::App& command, MediaOptions& media) {
  command.add_option("--image", media.images, "A picture to show: PNG, JPEG, BMP or GIF; may be repeated")
      ->allow_extra_args(false);
  command.add_option("--audio", media.sounds, "A recording to play: WAV, FLAC or MP3; may be repeated")
      ->allow_extra_args(false);
  command.add_option("--mmproj", media.projector, "The encoders' own file, where the model's has none");
  command
      .add_option("--image-tokens", media.image_tokens,
                  "The most tokens a picture takes: 70, 140, 280, 560 or 1120; 0 means what the model likes")
      ->capture_default_str();
}

}  // namespace bezel
