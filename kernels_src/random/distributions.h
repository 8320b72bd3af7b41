// Random numbers of the usual distributions.
#pragma once

#include "array/array.h"
#include "core/stream.h"
#include "kernels_src/random/random_state.h"

#include <cstdint>

namespace kernwright::kernels {

// Each sets every element of `out` (any strides) and is queued on `stream` (empty: the device's
// legacy stream). The numbers are those of Philox4x32-10; an element's depend on seed, offset and
// its row-major place alone, not on device or launch. A call of n elements uses the offsets up to
// offset + n. Throw InvalidArgument for a dtype or a value that does not fit, and where `out` is
// read-only.

/// From `low` up to and without `high`; float16, bfloat16, float32, float64. Multiples of 2 to the
/// -24 (float32), -11, -8, -53 are scaled.
void fill_uniform(const Array& out, double low, double high, const RandomState& state,
                  const Stream& stream = {});
/// Normal (Box and Muller); the floating types as above.
void fill_normal(const Array& out, double mean, double deviation, const RandomState& state,
                 const Stream& stream = {});
/// Exponential with this mean; the floating types as above.
void fill_exponential(const Array& out, double mean, const RandomState& state,
                      const Stream& stream = {});
/// Gamma with this shape and scale (Marsaglia and Tsang); the floating types as above.
void fill_gamma(const Array& out, double shape, double scale, const RandomState& state,
                const Stream& stream = {});
/// True or 1 with this probability, in steps of 2 to the -32; every real type.
void fill_bernoulli(const Array& out, double probability, const RandomState& state,
                    const Stream& stream = {});
/// `range` whole numbers (0: 2 to the 64) from `low` on, each with exactly the same chance; the
/// integer types, which hold all of them.
void fill_integers(const Array& out, std::uint64_t low, std::uint64_t range,
                   const RandomState& state, const Stream& stream = {});

}  // namespace kernwright::kernels
