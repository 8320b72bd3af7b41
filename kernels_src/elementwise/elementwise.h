// Elementwise operations on arrays of any types and strides, broadcast, and on numbers.
#pragma once

#include "array/array.h"
#include "core/stream.h"
#include "kernels_src/elementwise/operation.h"
#include "kernels_src/elementwise/scalar.h"

#include <span>

namespace kernwright::kernels {

/// An array, or a number.
struct Operand {
  const Array* array = nullptr;
  ScalarOperand number{};  ///< when there is no array; with one, its `weak` makes it a weak number
};

/// The operation of operations.def on each element of the operands, at least one an array,
/// broadcast to one shape: a new row-major array. One kernel converts each operand to the type that
/// NumPy computes in, computes, and rounds once: float16, bfloat16 and the 8-bit floats in float32.
/// Integers wrap around; integer division by 0 gives 0. pow() with a number of 2 or 0.5 is square()
/// or sqrt(), and integers to the power of a negative number are refused; negative exponents in an
/// array give 0 except for bases of 1 and -1. Queued on `stream` (empty: the legacy stream of the
/// arrays' device); returns before it is done. Throws InvalidArgument for shapes that do not
/// broadcast ("Incompatible dimensions"), arrays not on the "same device", calls without an array;
/// ArgumentError for types without the operation; ArgumentRangeError for a weak integer outside the
/// range of the arrays' type.
Array elementwise(Operation operation, std::span<const Operand> operands,
                  const Stream& stream = {});

/// elementwise() into `result`, of the broadcast shape or a shape that it broadcasts to, and of any
/// strides but 0. The type of `result` must hold the values up to digits ("same_kind"). `result`
/// may overlap operands: the operands are read as if copied away first. Also throws InvalidArgument
/// when `result` is read-only or does not fit, ArgumentError for its type.
void write_elementwise(const Array& result, Operation operation, std::span<const Operand> operands,
                       const Stream& stream = {});

/// Positions, counts or ids of int32 or int64 as row-major int32. Numbers beyond int32 become the
/// first or last number of int32, which stays outside of any range in use.
Array as_int32(const Array& ids, const Stream& stream = {});

/// The type of the result.
ScalarType elementwise_type(Operation operation, std::span<const Operand> operands);

}  // namespace kernwright::kernels
