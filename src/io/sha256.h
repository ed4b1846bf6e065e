// SHA-256 (FIPS 180-4), fed piece by piece: model files are larger than memory.
#pragma once
#include <array>
#include <span>
#include <string>

#include "base/types.h"

namespace bezel {

class Sha256 {
 public:
  void update(Bytes bytes);
  // The digest of everything since construction or the previous finish().
  std::array<u8, 32> finish();

 private:
  void compress(const std::byte* block);

  std::array<u32, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                            0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, 64> pending_{};  // the first total_ % 64 bytes are in use
  u64 total_ = 0;
};

// Lower-case digits, two a byte.
std::string to_hex(std::span<const u8> bytes);

}  // namespace bezel
