// The begin of a call in the sequence of random numbers.
#pragma once

#include "array/array.h"
#include "core/stream.h"

#include <cstdint>
#include <optional>

namespace kernwright::kernels {

/// A seed, and the number of elements drawn before: add the number of elements of each call to
/// `offset`, and no numbers are drawn twice. `counter`, one uint64 on the device, is
/// added to the offset when the kernel runs: a graph that also calls advance_counter() draws new
/// numbers each time it is launched.
struct RandomState {
  std::uint64_t seed = 0;
  std::uint64_t offset = 0;
  std::optional<Array> counter = std::nullopt;

  /// The address of the counter, or 0. Throws InvalidArgument unless it is one uint64 or int64 on
  /// `device`.
  CUdeviceptr counter_on(const Device& device) const;
  void use_on(const Stream& stream) const {
    if (counter) counter->use_on(stream);
  }
};

/// Adds `by` to the counter, in the order of `stream`.
void advance_counter(const Array& counter, std::uint64_t by, const Stream& stream = {});
/// The same; gives the counter from before as an array of its own, which stays as it is.
Array take_counter(const Array& counter, std::uint64_t by, const Stream& stream = {});

}  // namespace kernwright::kernels
