// Shared by the bindings of Array: the Python type, conversions of shapes, indexing.
#pragma once

#include "array/array.h"

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

namespace kernwright::python {

namespace py = pybind11;

/// The Array inside a Python object, or null when it is none. Costs one comparison for ours.
Array* find_array(PyObject* object) noexcept;

/// The Python object of a new array. As py::cast(), for a third of its cost: pybind11's list of
/// objects by address does not get to know it, so a later cast of a reference to the same Array
/// makes another object.
py::object new_array_object(Array&& array);

/// An int or a sequence of ints. Throws ArgumentError for anything else, InvalidArgument below 0
/// (-1 passes where `allow_minus_one`).
Shape shape_argument(py::handle value, bool allow_minus_one = false);

py::tuple shape_tuple(const Shape& values);

/// Whether all parts of an index are ints, slices, Ellipsis and None, so it makes a view.
bool is_basic_index(py::handle key);

/// NumPy's basic indexing: see is_basic_index(). The result is a view. Throws IndexError as NumPy
/// does, ArgumentError for parts of any other kind.
Array index_array(const Array& array, py::handle key);

/// A NumPy array of the values, in new host memory. Waits for the device first.
py::array to_numpy(const Array& array);

/// Copies a NumPy array (any strides, same element type and shape) into a contiguous view.
void assign_numpy(Array& array, const py::array& values);

}  // namespace kernwright::python
