// Counters of blocks: device memory that is zero between launches.
#pragma once

#include "core/stream.h"
#include "driver/driver_api.h"

#include <cstddef>

namespace kernwright::kernels {

inline constexpr std::size_t kZeroedWords = 4096;

/// Address of `count` words of 32 bits that are zero whenever a launch on `stream` begins, as long
/// as each launch leaves them zero: a fill of a microsecond less. Launches of one stream share
/// them, a graph has words of its own for each of its streams.
/// 0 when there are none: for more than kZeroedWords, for a stream whose handle another stream may
/// get, for one that another library captures, and on the simulated device, where a launch can be
/// interrupted without the device being lost. Thread-safe. Throws OutOfMemory.
CUdeviceptr zeroed_words(std::size_t count, const Stream& stream);

}  // namespace kernwright::kernels
