// Counters of blocks: device memory that is zero between launches.
#pragma once

#include "array/array.h"
#include "core/stream.h"

#include <cstddef>

namespace kernwright::kernels {

/// Words that the launches of one stream share. A launch that needs more gets separate words.
inline constexpr std::size_t kZeroedWords = 8192;

/// At least `count` words of 32 bits. They are zero when a launch on `stream` begins, and the
/// launch leaves them zero. Hold them until the launch is queued, then say use_on(stream). The
/// launches of a stream share them; this saves a fill. Words of a dead stream go to a later one
/// once its work is done. A graph has words of its own for each of its streams. Where sharing is
/// not safe, the words are for this launch alone and filled before it: on a stream whose handle
/// another stream may get, in a capture of another library, and on the simulated device, where a
/// launch can be interrupted without the device being lost. Thread-safe. Throws OutOfMemory.
Array zeroed_words(std::size_t count, const Stream& stream);

/// For tests that interrupt nothing: while an object lives, launches on the simulated device share
/// words as on a GPU.
class SharedWordsOnSim {
 public:
  SharedWordsOnSim() noexcept;
  ~SharedWordsOnSim();
  SharedWordsOnSim(const SharedWordsOnSim&) = delete;
  SharedWordsOnSim& operator=(const SharedWordsOnSim&) = delete;
};

}  // namespace kernwright::kernels
