// The 64-bit object behind mbarrier instructions.
#pragma once

#include <cstdint>

namespace kernwright::sim {

/// The encoding is our own (PTX leaves it open). A state returned by arrive is the object before
/// the arrival. Functions are always inlined: op handlers are built several times.
struct MbarrierObject {
  static constexpr std::uint64_t kCountLimit = (std::uint64_t{1} << 20) - 1;  ///< of arrivals
  static constexpr std::int32_t kByteLimit = (1 << 20) - 1;  ///< of outstanding transactions

  std::uint32_t pending = 0;   ///< arrivals that the current phase still waits for; bits 0-19
  std::uint32_t expected = 0;  ///< arrivals of the next phase; bits 20-39
  std::int32_t bytes = 0;      ///< transactions outstanding; bits 40-61
  bool phase = false;          ///< parity of the current phase; bit 62
  bool valid = false;          ///< between init and inval; bit 63

  [[gnu::always_inline]] static MbarrierObject unpack(std::uint64_t word) {
    MbarrierObject barrier;
    barrier.pending = static_cast<std::uint32_t>(word & kCountLimit);
    barrier.expected = static_cast<std::uint32_t>((word >> 20) & kCountLimit);
    barrier.bytes = static_cast<std::int32_t>(static_cast<std::int64_t>(word << 2) >> 42);
    barrier.phase = ((word >> 62) & 1) != 0;
    // Unwritten shared memory is full of 0xcd: it has more pending than expected.
    barrier.valid = (word >> 63) != 0 && barrier.pending <= barrier.expected;
    return barrier;
  }
  [[gnu::always_inline]] std::uint64_t pack() const {
    constexpr std::uint64_t kBytesMask = (std::uint64_t{1} << 22) - 1;
    return pending | std::uint64_t{expected} << 20 |
           (static_cast<std::uint64_t>(bytes) & kBytesMask) << 40 | std::uint64_t{phase} << 62 |
           std::uint64_t{valid} << 63;
  }
  [[gnu::always_inline]] void complete_if_done() {
    if (pending != 0 || bytes != 0) return;
    phase = !phase;
    pending = expected;
  }
  /// Adds to the transactions of the current phase; false when they leave their range.
  [[gnu::always_inline]] bool add_bytes(std::int64_t more) {
    const std::int64_t sum = bytes + more;
    if (sum > kByteLimit || sum < -kByteLimit) return false;
    bytes = static_cast<std::int32_t>(sum);
    return true;
  }
};

}  // namespace kernwright::sim
