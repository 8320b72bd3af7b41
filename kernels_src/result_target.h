// The array that a function writes its result to: the caller's `out`, or a new one.
#pragma once

#include "array/array.h"
#include "core/stream.h"

#include <initializer_list>
#include <optional>

namespace kernwright::kernels {

/// The result that a function makes; it refers to the shape. Messages of errors name the function
/// and the argument.
struct ResultForm {
  const char* function;
  Device& device;
  const Shape& shape;
  ScalarType type;
  const char* name = "out";  ///< of the argument
};

/// An argument of the function, or another result.
struct OtherArray {
  const char* name;
  const Array* array;  ///< null: there is none
};

const Array* pointer_or_null(const std::optional<Array>& array) noexcept;

/// `out`, or without it a new contiguous array. Throws InvalidArgument unless `out` has the form's
/// shape, type and device, may be written and has each element once.
Array result_array(const std::optional<Array>& out, const ResultForm& form, const Stream& stream);
/// result_array() for kernels that write results in the allocated layout. Throws InvalidArgument
/// unless `out` is contiguous and begins at a multiple of 16 bytes.
Array contiguous_result(const std::optional<Array>& out, const ResultForm& form,
                        const Stream& stream);

/// `out` where kernels that write contiguous results can store them there: it is contiguous and
/// begins at a multiple of 16 bytes. Else nothing: the result takes new memory, and deliver()
/// copies it. Throws InvalidArgument as result_array() does.
std::optional<Array> direct_target(const std::optional<Array>& out, const ResultForm& form,
                                   const Stream& stream);
/// `result`; with `out` that array, to which a result that lies elsewhere is copied. Both have the
/// same elements in order, perhaps in other axes.
Array deliver(const std::optional<Array>& out, const Array& result, const Stream& stream);

/// Throws InvalidArgument if `out` is given and may share memory with one of `others`.
void require_apart(const std::optional<Array>& out, const ResultForm& form,
                   std::initializer_list<OtherArray> others);
/// require_apart() for a function that can work in place: an array with the elements of `out` at
/// equal addresses is allowed.
void require_apart_or_same(const std::optional<Array>& out, const ResultForm& form,
                           std::initializer_list<OtherArray> others);

}  // namespace kernwright::kernels
