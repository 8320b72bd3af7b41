// The array that a function writes its result to: the caller's `out`, or a new one.
#pragma once

#include "array/array.h"
#include "core/stream.h"

#include <initializer_list>
#include <optional>

namespace kernwright::kernels {

/// The result that a function makes. Errors have both names.
struct ResultForm {
  const char* function;
  Device& device;
  Shape shape;
  ScalarType type;
  const char* name = "out";  ///< of the argument
};

/// An argument of the function, or another result.
struct OtherArray {
  const char* name;
  const Array* array;  ///< null: there is none
};

const Array* pointer_of(const std::optional<Array>& array) noexcept;

/// Whether both have the same elements at the same addresses.
bool is_same_view(const Array& a, const Array& b);

/// `out`, or without it a new contiguous array. Throws InvalidArgument unless `out` has the form's
/// shape, type and device, may be written and has each element once.
Array result_array(const std::optional<Array>& out, const ResultForm& form, const Stream& stream);
/// The same, where kernels write results as they allocate them. Throws InvalidArgument unless `out`
/// is contiguous and begins at a multiple of 16 bytes.
Array contiguous_result(const std::optional<Array>& out, const ResultForm& form,
                        const Stream& stream);

/// Throws InvalidArgument where `out`, if given, may share memory with one of `others`.
void require_apart(const std::optional<Array>& out, const ResultForm& form,
                   std::initializer_list<OtherArray> others);
/// The same, but an array of the same elements at the same addresses is allowed: the function may
/// work in place.
void require_apart_or_same(const std::optional<Array>& out, const ResultForm& form,
                           std::initializer_list<OtherArray> others);

/// `out` with the elements of `result`, which are copied where they are not there already. Without
/// `out` the result itself.
Array written_to(const std::optional<Array>& out, const Array& result, const Stream& stream);

}  // namespace kernwright::kernels
