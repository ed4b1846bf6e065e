// From a recording's file to its samples.
#pragma once
#include "base/result.h"
#include "media/audio.h"

namespace bezel {

// The rest of a longer recording is not decoded: the model hears 30 seconds.
inline constexpr u32 kDecodedSeconds = 31;

// WAV everywhere; natively also FLAC and MP3. Decided by the first bytes.
Result<Clip> decode_audio(Bytes file);

// PCM of 8 to 32 bits and floating point of 32 and 64.
Result<Clip> decode_wav(Bytes file);

// What is not WAV: natively FLAC and MP3, on the web an error.
Result<Clip> decode_compressed(Bytes file);

}  // namespace bezel
