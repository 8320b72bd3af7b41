// Outlines of arrays: what a recording of gradients remembers of one.
#include "array/array.h"
#include "base/errors.h"
#include "bindings/support/bindings.h"
#include "bindings/support/python_support.h"
#include "bindings/values/array_support.h"

namespace kernwright::python {
namespace {

/// An array of the same shape, type and device without memory: all that the sweep asks for.
PyObject* outline(PyObject*, PyObject* value) {
  return guarded<PyObject*>(nullptr, [&] {
    const Array* const array = array_of(value);
    if (array == nullptr) throw ArgumentError("only an array has an outline");
    return new_array_object(array->outline()).release().ptr();
  });
}

/// Whether an array has the shape and the type of another.
PyObject* is_like(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  const Array* const one = count == 2 ? array_of(arguments[0]) : nullptr;
  const Array* const other = count == 2 ? array_of(arguments[1]) : nullptr;
  const bool like = one != nullptr && other != nullptr && one->type() == other->type() &&
                    one->shape() == other->shape();
  return PyBool_FromLong(like ? 1 : 0);
}

}  // namespace

void bind_outline(py::module_& m) {
  static PyMethodDef outlined = {"_outline", &outline, METH_O,
                                 "The shape, dtype and device alone."};
  m.attr("_outline") = py::reinterpret_steal<py::object>(PyCFunction_New(&outlined, nullptr));
  static PyMethodDef compared = {
      "_is_like", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&is_like)),
      METH_FASTCALL, "Whether two arrays have one shape and dtype."};
  m.attr("_is_like") = py::reinterpret_steal<py::object>(PyCFunction_New(&compared, nullptr));
}

}  // namespace kernwright::python
