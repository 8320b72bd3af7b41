// Reading the arguments of reductions.
#include "bindings/kernels/reduction_calls.h"

#include "base/errors.h"
#include "base/format.h"
#include "bindings/support/python_support.h"
#include "bindings/values/dtype.h"

namespace kernwright::python {
namespace {

int one_axis_argument(py::handle axis) {
  if (PyBool_Check(axis.ptr()) || !PyIndex_Check(axis.ptr())) {
    throw ArgumentError(
        format("an axis is an int, got {}; several are a tuple of ints", short_repr(axis)));
  }
  const py::object index = py::reinterpret_steal<py::object>(PyNumber_Index(axis.ptr()));
  if (!index) throw py::error_already_set();
  int overflow = 0;
  const long value = PyLong_AsLongAndOverflow(index.ptr(), &overflow);
  if (overflow != 0 || value != static_cast<int>(value)) {
    throw InvalidArgument(format("axis {} is outside of every array", short_repr(axis)));
  }
  return static_cast<int>(value);
}

}  // namespace

std::optional<std::vector<int>> axes_argument(py::handle axis) {
  if (axis.is_none()) return std::nullopt;
  if (!PyTuple_Check(axis.ptr()) && !PyList_Check(axis.ptr()))
    return std::vector{one_axis_argument(axis)};
  std::vector<int> axes;
  for (const py::handle each : axis) axes.push_back(one_axis_argument(each));
  return axes;
}

std::optional<ScalarType> type_argument(py::handle dtype) {
  if (dtype.is_none()) return std::nullopt;
  return scalar_argument(dtype);
}

}  // namespace kernwright::python
