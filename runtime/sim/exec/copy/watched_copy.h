// Asynchronous copies as a watcher sees them.
#pragma once

#include <cstdint>
#include <vector>

namespace kernwright::sim {

class Watcher;

/// Bytes [begin, begin + bytes) of some memory.
struct Piece {
  std::uint64_t begin = 0, bytes = 0;
};

/// A copy from global to shared memory: one thread's cp.async, or (part of) a bulk copy.
struct AsyncCopy {
  std::uint64_t stamp = 0;    ///< the watcher's: what the shadows of its target say meanwhile
  std::uint64_t to = 0;       ///< in shared memory
  std::uint64_t from = 0;     ///< in global memory
  std::uint32_t bytes = 0;    ///< written
  std::uint32_t source = 0;   ///< bytes read
  std::uint32_t op = 0;       ///< index of the instruction
  std::uint32_t twins = 0;    ///< the watcher's: number of the CopyTwins that it is one of; 0: none
  std::uint32_t read = 0;     ///< the watcher's: number of the read of its source in shared memory
  Watcher* reader = nullptr;  ///< of the block with that memory

  bool reads(std::uint64_t begin, std::uint64_t end) const noexcept {
    return source != 0 && begin < from + source && end > from;
  }
  /// Whether it writes the same bytes to the same place from the same source.
  bool repeats(const AsyncCopy& other) const noexcept {
    return to == other.to && bytes == other.bytes && source == other.source &&
           (source == 0 || from == other.from);
  }
};

/// A bulk copy from shared to global memory.
struct BulkStore {
  std::uint64_t stamp = 0;    ///< the watcher's
  std::uint32_t op = 0;       ///< index of the instruction
  std::uint32_t read = 0;     ///< the watcher's: number of the read of its source; 0: it is over
  bool is_tensor = false;     ///< elements of a tensor, which have no padding among them
  std::vector<Piece> source;  ///< in shared memory
  std::vector<Piece> to;      ///< in global memory
};

}  // namespace kernwright::sim
