// Counters of blocks: device memory that is zero between launches.
#pragma once

#include "array/array.h"
#include "core/stream.h"

#include <cstddef>

namespace kernwright::kernels {

/// As many words launches of one stream share. For more of them each launch has its own.
inline constexpr std::size_t kZeroedWords = 8192;

/// At least `count` words of 32 bits that are zero when a launch on `stream` begins, and that the
/// launch leaves zero. Hold them until that launch is queued, then say use_on(stream). The launches
/// of a stream share them, which saves a fill. Words of a stream that is gone and done go to a
/// later one. A graph has words of its own for each of its streams. Words for this launch alone,
/// filled before it, are given where sharing is not safe: on a stream whose handle another stream
/// may get, in a capture of another library, and on the simulated device, where a launch can be
/// interrupted without the device being lost. Thread-safe. Throws OutOfMemory.
Array zeroed_words(std::size_t count, const Stream& stream);

/// For tests that interrupt nothing: while one lives, launches on the simulated device share words
/// as those on a GPU do.
class SharedWordsOnSim {
 public:
  SharedWordsOnSim() noexcept;
  ~SharedWordsOnSim();
  SharedWordsOnSim(const SharedWordsOnSim&) = delete;
  SharedWordsOnSim& operator=(const SharedWordsOnSim&) = delete;
};

}  // namespace kernwright::kernels
