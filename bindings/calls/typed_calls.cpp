// Patches the objects of pybind11: its messages about arguments, and the use of objects without
// initialisation.
#include "bindings/calls/typed_calls.h"

#include "base/errors.h"
#include "bindings/calls/recorded_calls.h"
#include "bindings/support/bindings.h"
#include "bindings/support/python_support.h"

#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

namespace kernwright::python {
namespace {

/// pybind11's own, one function for all bindings.
PlainCall dispatcher = nullptr;

PyObject* dispatch(PyObject* self, PyObject* const* arguments, std::size_t count,
                   PyObject* keywords) {
  PyObject* result = nullptr;
  if (!is_recording() || !handle_recorded(self, dispatcher, arguments, count, keywords, result))
      [[likely]] {
    result = dispatcher(self, arguments, count, keywords);
  }
  if (result == nullptr) [[unlikely]] {
    const auto* record = py::detail::function_record_ptr_from_PyObject(self);
    const auto context = py::reinterpret_steal<py::tuple>(
        Py_BuildValue("(Ozz)", record->scope ? record->scope.ptr() : Py_None, record->name,
                      record->next == nullptr ? record->signature : nullptr));
    explain_failure("explain_native", context, arguments, count, keywords);
  }
  return result;
}

/// `function` when it is a plain or wrapped function of pybind11.
void patch_function(PyObject* function) {
  if (function == nullptr || PyCFunction_Check(function) == 0) return;
  PyObject* const self = PyCFunction_GET_SELF(function);
  if (self == nullptr || py::detail::function_record_ptr_from_PyObject(self) == nullptr) return;
  PyMethodDef* const def = reinterpret_cast<PyCFunctionObject*>(function)->m_ml;
  static_assert(PYBIND11_VERSION_HEX >= 0x03010000,
                "functions are called by vectorcall from 3.1 on");
  const auto found = reinterpret_cast<PlainCall>(reinterpret_cast<void (*)()>(def->ml_meth));
  if (found == &dispatch) return;
  if (dispatcher == nullptr) dispatcher = found;
  if (found != dispatcher) return;
  def->ml_meth = reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&dispatch));
}

void patch_member(PyObject* member) {
  if (PyInstanceMethod_Check(member)) {
    patch_function(PyInstanceMethod_GET_FUNCTION(member));
  } else if (Py_TYPE(member) == &PyStaticMethod_Type) {
    patch_function(py::object(py::handle(member).attr("__func__")).ptr());
  } else if (PyObject_TypeCheck(member, &PyProperty_Type) != 0) {
    for (const char* part : {"fget", "fset"}) {
      const py::object accessor = py::handle(member).attr(part);
      patch_function(PyInstanceMethod_Check(accessor.ptr())
                         ? PyInstanceMethod_GET_FUNCTION(accessor.ptr())
                         : accessor.ptr());
    }
  } else {
    patch_function(member);
  }
}

std::string named_class(py::handle type) {
  const auto name = py::str(type.attr("__name__")).cast<std::string>();
  const bool is_memory = name.ends_with("Resource") || name.ends_with("Adaptor") ||
                         name == "MemoryBlock" || name == "Evictable" || name == "EvictionGroup";
  return (is_memory ? "kw.memory." : "kw.") + name;
}

constexpr const char* kNotMade = " cannot be made by calling its class: other functions return it";

/// pybind11 would call this for memory of an object made without __init__.
void* refuse_unmade(std::size_t) {
  throw ArgumentError(
      "an object whose __init__() never ran cannot be used: make it by calling its class, or call "
      "super().__init__(...) first");
}

PyObject* refuse_call(PyObject*, PyObject* const* arguments, Py_ssize_t count, PyObject*) {
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    const std::string name = count > 0 ? named_class(py::type::of(arguments[0])) : "it";
    throw ArgumentError(name + kNotMade);
  });
}

PyObject* refuse_new(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* const self = reinterpret_cast<PyObject*>(type);
  return guarded<PyObject*>(
      nullptr, [&]() -> PyObject* { throw ArgumentError(named_class(self) + kNotMade); });
}

PyObject* refuse_pickle(PyObject* self, PyObject*) {
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    throw ArgumentError("a " + named_class(py::type::of(py::handle(self))) +
                        " cannot be pickled or copied: it belongs to its process");
  });
}

template <typename Function>
PyMethodDef make_method(const char* name, Function function, int flags, const char* doc) {
  return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function)), flags, doc};
}

/// How CPython names the class in its own messages ("'kw.Stream' object is not iterable").
void name_class(PyTypeObject* type) {
  const std::string class_name = named_class(py::handle(reinterpret_cast<PyObject*>(type)));
  char* const kept = static_cast<char*>(std::malloc(class_name.size() + 1));
  if (kept == nullptr) return;
  std::memcpy(kept, class_name.c_str(), class_name.size() + 1);
  type->tp_name = kept;  // for good, as the class itself
}

void complete_class(py::handle type) {
  static PyMethodDef call = make_method("__init__", &refuse_call, METH_FASTCALL | METH_KEYWORDS,
                                        "__init__(self, *arguments, **options)\n--\n\n"
                                        "Raises ArgumentError: others return such objects.");
  static PyMethodDef pickle = make_method("__reduce__", &refuse_pickle, METH_NOARGS, nullptr);
  auto* const object = reinterpret_cast<PyTypeObject*>(type.ptr());
  auto* const info = py::detail::get_type_info(object);
  if (info != nullptr) info->operator_new = &refuse_unmade;
  const std::string_view full = object->tp_name;
  if (full.starts_with("kernwright._core.")) name_class(object);
  if (object->tp_new == nullptr) object->tp_new = &refuse_new;
  const auto* const base =
      reinterpret_cast<PyTypeObject*>(py::detail::get_internals().instance_base);
  if (info != nullptr && object->tp_init == base->tp_init) {
    const auto function = py::reinterpret_steal<py::object>(PyCFunction_New(&call, nullptr));
    py::setattr(type, "__init__",
                py::reinterpret_steal<py::object>(PyInstanceMethod_New(function.ptr())));
  }
  const py::handle plain(reinterpret_cast<PyObject*>(&PyBaseObject_Type));
  if (type.attr("__reduce__").is(plain.attr("__reduce__"))) {
    py::setattr(type, "__reduce__",
                py::reinterpret_steal<py::object>(PyDescr_NewMethod(object, &pickle)));
  }
}

bool is_a(const py::error_already_set& error, const char* name) {
  const py::object type = module_member("kernwright.errors", name);
  return PyErr_GivenExceptionMatches(error.type().ptr(), type.ptr()) != 0;
}

/// Plain errors become ours. Ours know their subject. Two of those leave with the name of the call:
/// refusals of a capture, and errors in a call that the user did not write.
bool is_explained(const py::error_already_set& error) {
  if (is_a(error, "Error")) {
    return is_a(error, "CaptureError") || has_attribute(error.value(), "_kernwright_call");
  }
  for (PyObject* const kind : {PyExc_TypeError, PyExc_ValueError, PyExc_ArithmeticError,
                               PyExc_LookupError, PyExc_AttributeError}) {
    if (PyErr_GivenExceptionMatches(error.type().ptr(), kind) != 0) return true;
  }
  return false;
}

}  // namespace

void explain_failure(const char* helper, const py::tuple& context, PyObject* const* arguments,
                     std::size_t count, PyObject* keywords) noexcept {
  py::error_already_set error;
  try {
    const StopAtExit stop;
    if (!is_explained(error)) return error.restore();
    const auto positional = static_cast<std::size_t>(PyVectorcall_NARGS(count));
    py::tuple given(positional);
    for (std::size_t i = 0; i < positional; ++i) given[i] = py::handle(arguments[i]);
    py::dict named;
    const Py_ssize_t names = keywords == nullptr ? 0 : PyTuple_GET_SIZE(keywords);
    for (Py_ssize_t i = 0; i < names; ++i) {
      named[py::handle(PyTuple_GET_ITEM(keywords, i))] =
          py::handle(arguments[positional + static_cast<std::size_t>(i)]);
    }
    if (error.trace()) PyException_SetTraceback(error.value().ptr(), error.trace().ptr());
    const py::object explain = module_member("kernwright._support.calls", helper);
    const auto all = py::reinterpret_steal<py::tuple>(
        PySequence_Concat(context.ptr(), py::make_tuple(given, named, error.value()).ptr()));
    const py::object made = call_python(explain, all);
    if (made.is_none()) return error.restore();
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(made.ptr())), made.ptr());
  } catch (...) {  // at the end of the interpreter nothing can be imported
    PyErr_Clear();
    error.restore();
  }
}

void type_calls(py::module_& m) {
  for (const auto& item : m.attr("__dict__").cast<py::dict>()) {
    if (PyType_Check(item.second.ptr()) == 0) {
      patch_function(item.second.ptr());
      continue;
    }
    const auto* const type = reinterpret_cast<PyTypeObject*>(item.second.ptr());
    for (const auto& member : py::reinterpret_borrow<py::dict>(type->tp_dict)) {
      patch_member(member.second.ptr());
    }
    complete_class(item.second);
  }
}

}  // namespace kernwright::python
