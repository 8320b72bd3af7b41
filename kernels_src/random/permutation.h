// Random orders.
#pragma once

#include "array/array.h"
#include "core/stream.h"
#include "kernels_src/random/random_state.h"

#include <cstdint>

namespace kernwright::kernels {

/// The first `count` of the numbers 0 to n - 1 in random order, int32 or int64. Up to 2048 of them
/// are sorted by random keys of 64 bits: every order has the same chance. More of them go through a
/// bijection of eight keyed Feistel rounds, in one pass and with no memory besides: always a
/// permutation, but of the n! orders only those that 256 bits of key reach. Uses the offsets up to
/// offset + max(n, 2). Throws InvalidArgument for count > n or an n that the type does not hold.
Array permutation(Device& device, std::int64_t n, std::int64_t count, ScalarType type,
                  const RandomState& state, const Stream& stream = {});

/// `count` of the places of `weights` (float64, one axis, contiguous) without replacement, in the
/// order in which they are drawn: int64. Places of weight 0 (or NaN, or below) come last. Uses the
/// offsets up to offset + n. Throws InvalidArgument.
Array choose_without_replacement(const Array& weights, std::int64_t count, const RandomState& state,
                                 const Stream& stream = {});

}  // namespace kernwright::kernels
