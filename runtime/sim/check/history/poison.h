// Bitmaps of unwritten bytes: one bit per byte, set = not initialised.
#pragma once

#include <cstdint>

namespace kernwright::sim {

/// As many bits, up to 64, the lowest ones.
inline std::uint64_t low_bits(std::uint64_t count) {
  return count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
}

/// The bits of `count` bytes (1 to 64) from `at` on, lowest first. Reads one word past the last
/// one where the bits straddle, so bitmaps have a word to spare.
inline std::uint64_t poison_bits(const std::uint64_t* map, std::uint64_t at, std::uint32_t count) {
  const std::uint64_t shift = at & 63;
  std::uint64_t bits = map[at >> 6] >> shift;
  if (shift + count > 64) bits |= map[(at >> 6) + 1] << (64 - shift);
  return bits & low_bits(count);
}

/// Whether any of `count` bytes from `at` on is poisoned.
inline bool any_poison(const std::uint64_t* map, std::uint64_t at, std::uint64_t count) {
  std::uint64_t bits = 0;
  while (count != 0) {
    const std::uint32_t part = count < 64 ? static_cast<std::uint32_t>(count) : 64;
    bits |= poison_bits(map, at, part);
    at += part;
    count -= part;
  }
  return bits != 0;
}

/// Sets or clears the bits of `count` bytes from `at` on.
template <bool kPoisoned>
inline void set_poison(std::uint64_t* map, std::uint64_t at, std::uint64_t count) {
  while (count != 0) {
    const std::uint64_t shift = at & 63;
    const std::uint64_t part = count < 64 - shift ? count : 64 - shift;
    const std::uint64_t ones = low_bits(part) << shift;
    if (kPoisoned) {
      map[at >> 6] |= ones;
    } else {
      map[at >> 6] &= ~ones;
    }
    at += part;
    count -= part;
  }
}

/// Clears the bits named by `bits` of up to 64 bytes from `at` on.
inline void clear_poison(std::uint64_t* map, std::uint64_t at, std::uint64_t bits) {
  const std::uint64_t shift = at & 63;
  map[at >> 6] &= ~(bits << shift);
  if (shift != 0) map[(at >> 6) + 1] &= ~(bits >> (64 - shift));
}

/// Sets them.
inline void mark_poison(std::uint64_t* map, std::uint64_t at, std::uint64_t bits) {
  const std::uint64_t shift = at & 63;
  map[at >> 6] |= bits << shift;
  if (shift != 0) map[(at >> 6) + 1] |= bits >> (64 - shift);
}

}  // namespace kernwright::sim
