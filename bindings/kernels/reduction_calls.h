// Shared by the bindings of reductions and scans: the arguments axis, dtype and out.
#pragma once

#include "array/array.h"
#include "base/scalar_type.h"

#include <pybind11/pybind11.h>
#include <optional>
#include <vector>

namespace kernwright::python {

namespace py = pybind11;

/// None: nothing. Else an int or a sequence of ints. Throws ArgumentError for anything else.
std::optional<std::vector<int>> axes_argument(py::handle axis);

/// None: nothing. Else an element type.
std::optional<ScalarType> type_argument(py::handle dtype);

/// Makes `function` a method of kernwright.Array, with these arguments behind self.
template <typename Function, typename... Arguments>
void add_array_method(py::module_& m, const char* name, Function&& function,
                      const Arguments&... arguments) {
  const py::object type = m.attr("Array");
  type.attr(name) =
      py::cpp_function(std::forward<Function>(function), py::name(name), py::is_method(type),
                       py::sibling(py::getattr(type, name, py::none())), arguments...);
}

}  // namespace kernwright::python
