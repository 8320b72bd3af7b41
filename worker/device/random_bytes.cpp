// SplitMix64 by its counter, so that any place of the stream costs the same.
#include "worker/device/random_bytes.h"

#include "base/hash.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace kernwright {
static_assert(std::endian::native == std::endian::little);

void random_bytes(std::uint64_t seed, std::uint64_t offset, std::span<std::byte> to) noexcept {
  if (to.empty()) return;  // memcpy must not get a null address
  std::uint64_t index = offset / 8;
  std::size_t done = 0;
  if (const std::size_t skipped = offset % 8; skipped != 0) {
    const std::uint64_t word = splitmix_at(seed, index++);
    done = std::min(8 - skipped, to.size());
    std::memcpy(to.data(), reinterpret_cast<const std::byte*>(&word) + skipped, done);
  }
  for (; to.size() - done >= 8; done += 8) {
    const std::uint64_t word = splitmix_at(seed, index++);
    std::memcpy(to.data() + done, &word, 8);
  }
  if (done == to.size()) return;
  const std::uint64_t word = splitmix_at(seed, index);
  std::memcpy(to.data() + done, &word, to.size() - done);
}

}  // namespace kernwright
