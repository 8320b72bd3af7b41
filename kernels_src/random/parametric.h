// Random numbers whose parameters are values or arrays: the distributions of NumPy's Generator.
#pragma once

#include "array/array.h"
#include "core/stream.h"
#include "kernels_src/random/random_state.h"

#include <span>
#include <string_view>
#include <variant>

namespace kernwright::kernels {

/// A value for all numbers, or a float64 array with one for each: contiguous, with the shape of the
/// result, on its device.
using RandomParameter = std::variant<double, Array>;

/// Sets every element of `out` (any strides) to a number of the distribution `kind`, queued on
/// `stream` (empty: the device's legacy stream). The numbers of uniform, normal, exponential,
/// gamma, bernoulli and integers are those of distributions.h with such parameters; the bits of
/// the two parameters of integers are an int64 (the lowest) and a uint64 (how many, 0 for 2 to the
/// 64). A call of n elements uses the offsets up to offset + n. Parameters are not checked: one
/// outside its range gives NaN, in whole numbers -1, and a chance is clipped to 0 ... 1 in
/// bernoulli. Throws InvalidArgument for an unknown kind, another number of parameters, a dtype or
/// an array that does not fit, and where `out` is read-only.
void fill_parametric(const Array& out, std::string_view kind,
                     std::span<const RandomParameter> parameters, const RandomState& state,
                     const Stream& stream = {});

/// out[..., k]: how often outcome k came in so many trials. `out` is int64 and contiguous, of rows
/// of K outcomes; `chances` float64 and contiguous: K weights, or out's shape; `trials` a whole
/// value, or a contiguous float64 array with one for each row. Weights are divided by their sum;
/// a row with a negative weight, NaN or zeros alone gives -1. A row uses one offset. Throws
/// InvalidArgument.
void fill_multinomial(const Array& out, const Array& chances, const RandomParameter& trials,
                      const RandomState& state, const Stream& stream = {});

}  // namespace kernwright::kernels
