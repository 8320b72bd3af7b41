// The reductions, their types, and the spelling of their kernels.
#pragma once

#include "base/scalar_type.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace kernwright::kernels {

enum class Reduction : std::uint8_t {
  sum,
  prod,
  mean,
  max,
  min,
  argmax,
  argmin,
  any,
  all,
  count_nonzero,
  var,
  std,
  norm_zero,      ///< number of elements that are not 0
  norm_one,       ///< sum of absolute values
  norm_two,       ///< root of the sum of their squares
  norm_any,       ///< the order is the call's parameter
  norm_largest,   ///< largest absolute value
  norm_smallest,  ///< smallest absolute value
  logsumexp,
  nansum,  ///< from here on, reductions pass over NaN
  nanprod,
  nanmean,
  nanmax,
  nanmin,
  nanvar,
  nanstd,
};

/// The name in messages: "sum"; and the reduction with this name, or nothing.
std::string_view reduction_name(Reduction op) noexcept;
std::optional<Reduction> reduction_from_name(std::string_view name) noexcept;

/// A reduction and the types of the input, of the combined values, and of the result.
struct ReductionTypes {
  /// any or all for a sum or product of bools, the plain one where no element can be NaN
  Reduction op = Reduction::sum;
  ScalarType in = ScalarType::float32;
  ScalarType as = ScalarType::float32;
  ScalarType out = ScalarType::float32;
};

/// `wanted`: the dtype argument of sum, prod and mean. Throws InvalidArgument, with the type, for
/// what has no meaning: an order of complex numbers, a mean of integers.
ReductionTypes reduction_types(Reduction op, ScalarType in, std::optional<ScalarType> wanted);

/// The reducer's name in include/reducers.cuh and the types: "Total<Float32, Float32>".
std::string reducer_expression(const ReductionTypes& types, bool wide);
/// The size of the reducer's State.
std::size_t state_size(const ReductionTypes& types, bool wide) noexcept;

/// Whether it asks for the order of the elements.
constexpr bool is_place(Reduction op) noexcept {
  return op == Reduction::argmax || op == Reduction::argmin;
}
/// Whether it has a result for no elements.
constexpr bool has_identity(Reduction op) noexcept {
  return !is_place(op) && op != Reduction::max && op != Reduction::min &&
         op != Reduction::norm_largest && op != Reduction::norm_smallest &&
         op != Reduction::nanmax && op != Reduction::nanmin;
}

/// The result type of sums and products: 64 bits for integers, `in` for all further types.
ScalarType sum_type(ScalarType in) noexcept;

}  // namespace kernwright::kernels
