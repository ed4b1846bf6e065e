#include "io/sha256.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace bezel {
namespace {

constexpr std::size_t kBlock = 64;
constexpr std::size_t kLengthOffset = 56;  // the last block ends with the message's length in bits

constexpr std::array<u32, 64> kRound = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

u32 load_big_endian(const std::byte* from) {
  u32 word = 0;
  std::memcpy(&word, from, sizeof word);
  return std::byteswap(word);
}

}  // namespace

void Sha256::compress(const std::byte* block) {
  std::array<u32, 64> w;
  for (std::size_t t = 0; t < 16; ++t) w[t] = load_big_endian(block + 4 * t);
  for (std::size_t t = 16; t < 64; ++t) {
    const u32 s0 = std::rotr(w[t - 15], 7) ^ std::rotr(w[t - 15], 18) ^ (w[t - 15] >> 3);
    const u32 s1 = std::rotr(w[t - 2], 17) ^ std::rotr(w[t - 2], 19) ^ (w[t - 2] >> 10);
    w[t] = w[t - 16] + s0 + w[t - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (std::size_t t = 0; t < 64; ++t) {
    const u32 s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const u32 choice = (e & f) ^ (~e & g);
    const u32 t1 = h + s1 + choice + kRound[t] + w[t];
    const u32 s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const u32 majority = (a & b) ^ (a & c) ^ (b & c);
    h = g;
    g = f;
    f = e;
    e = d + t1;
    d = c;
    c = b;
    b = a;
    a = t1 + s0 + majority;
  }
  const std::array<u32, 8> added{a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < state_.size(); ++i) state_[i] += added[i];
}

void Sha256::update(Bytes bytes) {
  const auto used = static_cast<std::size_t>(total_ % kBlock);
  total_ += bytes.size();
  if (used != 0) {
    const std::size_t taken = std::min(bytes.size(), kBlock - used);
    std::ranges::copy(bytes.first(taken), pending_.begin() + static_cast<std::ptrdiff_t>(used));
    if (used + taken < kBlock) return;
    compress(pending_.data());
    bytes = bytes.subspan(taken);
  }
  for (; bytes.size() >= kBlock; bytes = bytes.subspan(kBlock)) compress(bytes.data());
  std::ranges::copy(bytes, pending_.begin());
}

std::array<u8, 32> Sha256::finish() {
  const u64 bits = total_ * 8;
  const auto used = static_cast<std::size_t>(total_ % kBlock);
  std::array<std::byte, kBlock + 8> tail{std::byte{0x80}};
  const std::size_t zeros_end = (used < kLengthOffset ? kLengthOffset : kLengthOffset + kBlock) - used;
  for (std::size_t i = 0; i < 8; ++i) tail[zeros_end + i] = static_cast<std::byte>(bits >> (56 - 8 * i));
  update(Bytes(tail).first(zeros_end + 8));

  std::array<u8, 32> digest{};
  for (std::size_t i = 0; i < digest.size(); ++i) {
    digest[i] = static_cast<u8>(state_[i / 4] >> (24 - 8 * (i % 4)));
  }
  *this = Sha256{};
  return digest;
}

std::string to_hex(std::span<const u8> bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const u8 byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace bezel
