// Between ScalarType and NumPy's dtypes, with ml_dtypes for the types missing in NumPy.
#pragma once

#include "base/scalar_type.h"
#include "core/kernel_signature.h"

#include <pybind11/numpy.h>
#include <optional>
#include <vector>

namespace kernwright::python {

namespace py = pybind11;

/// The dtype of `type`; imports ml_dtypes for bfloat16 and the float8 types.
py::dtype dtype_object(ScalarType type);

/// The element type of a native-endian dtype object, or nothing.
std::optional<ScalarType> dtype_scalar(py::handle dtype);

/// From what users write as a dtype: a name ("float32", "f4", "bfloat16"), a dtype, a scalar type,
/// another library's dtype ("torch.float32"). Throws ArgumentError listing the known types.
ScalarType scalar_argument(py::handle dtype);

/// The element type of a NumPy or ml_dtypes scalar's class, or nothing.
std::optional<ScalarType> type_scalar(PyTypeObject* type);

/// The dtype of a struct or vector that a parameter is or points to; null where its layout is
/// unknown.
py::object struct_dtype(const Parameter& parameter);
/// The same as a kernwright._jit.structs.Layout, with comparison.
py::object struct_layout(const Parameter& parameter);
py::object struct_layout(const std::vector<StructField>& fields, std::size_t size);
/// The unknown members and bytes of a struct, by value or pointed to.
py::tuple opaque_parts(const Parameter& parameter);

/// The bytes of a NumPy or ml_dtypes scalar object (they follow the object's head).
inline const void* scalar_bytes(PyObject* object) noexcept {
  return reinterpret_cast<const char*>(object) + sizeof(PyObject);
}

}  // namespace kernwright::python
