// A wrapper of functions written in Python; it explains calls with wrong arguments.
#include "bindings/calls/recorded_calls.h"
#include "bindings/calls/typed_calls.h"
#include "bindings/support/bindings.h"
#include "bindings/support/python_support.h"

#include <structmember.h>

#include <cstddef>

namespace kernwright::python {
namespace {

struct TypedFunction {
  PyObject_HEAD vectorcallfunc call;
  PyObject* function;  // owned
};

PyObject* inner_function(PyObject* self) {
  return reinterpret_cast<TypedFunction*>(self)->function;
}

PyObject* call_plain(PyObject* self, PyObject* const* arguments, std::size_t count,
                     PyObject* keywords) {
  return PyObject_Vectorcall(inner_function(self), arguments, count, keywords);
}

PyObject* call_function(PyObject* self, PyObject* const* arguments, std::size_t count,
                        PyObject* keywords) {
  PyObject* result = nullptr;
  if (!is_recording() || !handle_recorded(self, &call_plain, arguments, count, keywords, result))
      [[likely]] {
    result = PyObject_Vectorcall(inner_function(self), arguments, count, keywords);
  }
  if (result == nullptr) [[unlikely]] {
    const auto context = py::reinterpret_steal<py::tuple>(PyTuple_Pack(1, inner_function(self)));
    explain_failure("explain_python", context, arguments, count, keywords);
  }
  return result;
}

PyObject* make(PyTypeObject* type, PyObject* arguments, PyObject*) {
  PyObject* function = nullptr;
  if (PyArg_ParseTuple(arguments, "O!", &PyFunction_Type, &function) == 0) return nullptr;
  PyObject* const made = type->tp_alloc(type, 0);
  if (made == nullptr) return nullptr;
  auto* const typed = reinterpret_cast<TypedFunction*>(made);
  typed->call = &call_function;
  Py_INCREF(function);
  typed->function = function;
  return made;
}

void destroy(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  Py_DECREF(inner_function(self));
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* bind_to(PyObject* self, PyObject* object, PyObject*) {
  if (object != nullptr && object != Py_None) return PyMethod_New(self, object);
  Py_INCREF(self);
  return self;
}

PyObject* attribute(PyObject* self, PyObject* name) {
  PyObject* const found = PyObject_GenericGetAttr(self, name);
  if (found != nullptr || PyErr_ExceptionMatches(PyExc_AttributeError) == 0) return found;
  PyErr_Clear();
  return PyObject_GetAttr(inner_function(self), name);
}

PyObject* forward(PyObject* self, void* name) {
  return PyObject_GetAttrString(inner_function(self), static_cast<const char*>(name));
}

PyObject* represent(PyObject* self) { return PyObject_Repr(inner_function(self)); }

PyObject* reduce(PyObject* self, PyObject*) {
  return PyObject_GetAttrString(inner_function(self), "__qualname__");
}

}  // namespace

void bind_typed_function(py::module_& m) {
  static char doc[] = "__doc__", module[] = "__module__";
  static PyGetSetDef getters[] = {
      {doc, forward, nullptr, nullptr, doc},
      {module, forward, nullptr, nullptr, module},
      {nullptr, nullptr, nullptr, nullptr, nullptr},
  };
  static PyMethodDef methods[] = {
      {"__reduce__", reduce, METH_NOARGS, nullptr},
      {nullptr, nullptr, 0, nullptr},
  };
  static PyMemberDef members[] = {
      {"__vectorcalloffset__", T_PYSSIZET, offsetof(TypedFunction, call), READONLY, nullptr},
      {"__wrapped__", T_OBJECT, offsetof(TypedFunction, function), READONLY, nullptr},
      {nullptr, 0, 0, 0, nullptr},
  };
  static PyType_Slot slots[] = {
      {Py_tp_new, reinterpret_cast<void*>(&make)},
      {Py_tp_dealloc, reinterpret_cast<void*>(&destroy)},
      {Py_tp_call, reinterpret_cast<void*>(&PyVectorcall_Call)},
      {Py_tp_descr_get, reinterpret_cast<void*>(&bind_to)},
      {Py_tp_getattro, reinterpret_cast<void*>(&attribute)},
      {Py_tp_repr, reinterpret_cast<void*>(&represent)},
      {Py_tp_getset, getters},
      {Py_tp_methods, methods},
      {Py_tp_members, members},
      {0, nullptr},
  };
  static PyType_Spec spec = {
      "kernwright._core._TypedFunction", sizeof(TypedFunction), 0,
      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR, slots};
  m.attr("_TypedFunction") = py::reinterpret_steal<py::object>(PyType_FromSpec(&spec));
}

}  // namespace kernwright::python
