// The counters of a memory resource.
#pragma once

#include <cstdint>

namespace kernwright {

/// Bytes and events since the resource was made. Of a pool, used + padding + cached == reserved.
struct MemoryStats {
  std::uint64_t used = 0;           ///< bytes in use, as requested
  std::uint64_t used_peak = 0;      ///< the most of these at once
  std::uint64_t padding = 0;        ///< bytes in use beyond the requests, by the size classes
  std::uint64_t cached = 0;         ///< bytes kept for reuse
  std::uint64_t reserved = 0;       ///< bytes taken from the driver, or from the upstream resource
  std::uint64_t reserved_peak = 0;  ///< the most of these at once
  std::uint64_t limit = 0;          ///< bytes; 0: none
  std::uint64_t blocks = 0;         ///< allocations in use
  std::uint64_t segments = 0;       ///< pieces of the reserved bytes
  std::uint64_t allocations = 0;    ///< successful ones; hits + misses
  std::uint64_t frees = 0;
  std::uint64_t hits = 0;           ///< allocations served from cached memory
  std::uint64_t misses = 0;         ///< allocations by the driver or upstream
  std::uint64_t evictions = 0;      ///< evictable buffers moved to the host
  std::uint64_t driver_allocs = 0;  ///< pieces taken from the driver or upstream
  std::uint64_t driver_frees = 0;   ///< pieces given back
  std::uint64_t stream_waits = 0;   ///< blocks taken over from a stream with pending work
  std::uint64_t failures = 0;       ///< requests with the result OutOfMemory
  std::uint64_t refused_frees = 0;  ///< double frees, foreign addresses, wrong sizes
};

}  // namespace kernwright
