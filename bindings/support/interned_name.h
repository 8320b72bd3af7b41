// An attribute's name, interned once.
#pragma once

#include <pybind11/pybind11.h>

namespace kernwright::python {

namespace py = pybind11;

/// value.name without the string made by attr("name") each time.
class InternedName {
 public:
  explicit InternedName(const char* text) : text_(PyUnicode_InternFromString(text)) {}
  py::object get(py::handle value) const {
    PyObject* const found = PyObject_GetAttr(value.ptr(), text_);
    if (found == nullptr) throw py::error_already_set();
    return py::reinterpret_steal<py::object>(found);
  }
  py::object call(py::handle value) const {
    PyObject* const result = PyObject_CallMethodNoArgs(value.ptr(), text_);
    if (result == nullptr) throw py::error_already_set();
    return py::reinterpret_steal<py::object>(result);
  }

 private:
  PyObject* text_;  // held for good
};

}  // namespace kernwright::python
