// A stream of random bytes that depends on its seed and the place in it alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace kernwright {

/// Fills `to` with the bytes from `offset` on of the stream of `seed`: word i (8 bytes, little
/// endian) is splitmix_at(seed, i).
void random_bytes(std::uint64_t seed, std::uint64_t offset, std::span<std::byte> to) noexcept;

}  // namespace kernwright
