// A stream of random bytes that depends on its seed and the place in it alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace kernwright {

/// Output `index` of SplitMix64 (Steele, Lea, Flood 2014) from that seed.
constexpr std::uint64_t random_word(std::uint64_t seed, std::uint64_t index) noexcept {
  std::uint64_t z = seed + (index + 1) * 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

/// Fills `to` with the bytes from `offset` on of the stream of `seed`: word i (8 bytes, little
/// endian) is random_word(seed, i).
void random_bytes(std::uint64_t seed, std::uint64_t offset, std::span<std::byte> to) noexcept;

}  // namespace kernwright
