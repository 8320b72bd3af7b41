// Copies one value of each lane between places with different strides from lane to lane.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace kernwright::sim {

/// The place of lane i's value: data + i * stride.
template <typename Byte>
struct Strided {
  Byte* data;
  std::size_t stride;
  Byte* at(std::size_t lane) const { return data + lane * stride; }
};

// Inlined always: sources compiled for several instruction sets have it.
namespace strided {

/// With a size known to the compiler: each lane's is a load and a store.
template <std::size_t kBytes>
[[gnu::always_inline]] inline void copy(Strided<std::byte> to, Strided<const std::byte> from,
                                        std::uint32_t lanes) {
  constexpr std::size_t kAll = 32;
  if (lanes == ~0u && to.stride == kBytes && from.stride == kBytes) {
    std::memmove(to.data, from.data, kAll * kBytes);
  } else if (lanes == ~0u) {
    for (std::size_t i = 0; i < kAll; ++i) std::memcpy(to.at(i), from.at(i), kBytes);
  } else {
    for (; lanes != 0; lanes &= lanes - 1) {
      const auto i = static_cast<std::size_t>(std::countr_zero(lanes));
      std::memcpy(to.at(i), from.at(i), kBytes);
    }
  }
}

}  // namespace strided

/// `bytes` of each of `lanes`; those of one lane do not overlap.
[[gnu::always_inline]] inline void copy_lanes(Strided<std::byte> to, Strided<const std::byte> from,
                                              std::size_t bytes, std::uint32_t lanes) {
  switch (bytes) {
    case 1: return strided::copy<1>(to, from, lanes);
    case 2: return strided::copy<2>(to, from, lanes);
    case 4: return strided::copy<4>(to, from, lanes);
    case 8: return strided::copy<8>(to, from, lanes);
    case 16: return strided::copy<16>(to, from, lanes);
    default:
      for (; lanes != 0; lanes &= lanes - 1) {
        const auto i = static_cast<std::size_t>(std::countr_zero(lanes));
        std::memcpy(to.at(i), from.at(i), bytes);
      }
  }
}

}  // namespace kernwright::sim
