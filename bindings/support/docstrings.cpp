// Installs the table of docstrings made by scripts/docstrings.py.
#include "bindings/support/docstrings.h"

#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

namespace kernwright::python {
namespace {

struct Docstring {
  const char* type;    ///< class; empty for a function of the module
  const char* member;  ///< empty for the class itself
  const char* text;    ///< "name(parameters)\n--\n\ndocstring"; the docstring for others
};

constexpr Docstring kDocstrings[] = {
#include "docstrings.inc"
};

/// Unbound methods of CPython want "$self"; bound ones then leave it out.
std::string bind_self(const char* text) {
  std::string result = text;
  const std::size_t at = result.find("(self");
  return at == std::string::npos ? result : result.insert(at + 1, "$");
}

void describe_function(PyObject* function, const char* text) {
  auto* const def = reinterpret_cast<PyCFunctionObject*>(function)->m_ml;
  PyObject* const self = PyCFunction_GET_SELF(function);
  const bool is_ours =
      self != nullptr && py::detail::function_record_ptr_from_PyObject(self) != nullptr;
  // pybind11 frees the text of its own functions.
  if (is_ours) std::free(const_cast<char*>(def->ml_doc));
  def->ml_doc = is_ours ? strdup(text) : text;
}

void describe(py::handle object, const char* text) {
  PyObject* const member = object.ptr();
  const std::string_view kind = Py_TYPE(member)->tp_name;
  if (PyInstanceMethod_Check(member)) {
    describe(PyInstanceMethod_GET_FUNCTION(member), text);
  } else if (Py_TYPE(member) == &PyStaticMethod_Type) {
    describe(object.attr("__func__"), text);
  } else if (PyCFunction_Check(member)) {
    describe_function(member, text);
  } else if (kind == "method_descriptor") {
    reinterpret_cast<PyMethodDescrObject*>(member)->d_method->ml_doc =
        strdup(bind_self(text).c_str());
  } else if (kind == "getset_descriptor") {
    reinterpret_cast<PyGetSetDescrObject*>(member)->d_getset->doc = text;
  } else if (kind != "wrapper_descriptor") {  // its text is one for all types
    object.attr("__doc__") = text;
  }
}

}  // namespace

void install_docstrings(py::module_& m) {
  const auto space = py::reinterpret_borrow<py::dict>(m.attr("__dict__"));
  py::dict members = space;
  for (const auto& [type, member, text] : kDocstrings) {
    if (*member == '\0') {  // members come after their class
      if (!space.contains(type)) {
        members = py::dict();
        continue;
      }
      const py::object described = space[type];
      members = py::reinterpret_borrow<py::dict>(
          reinterpret_cast<PyTypeObject*>(described.ptr())->tp_dict);
      if (*text != '\0') described.attr("__doc__") = text;
      continue;
    }
    const py::dict& scope = *type == '\0' ? space : members;
    if (scope.contains(member)) describe(scope[member], text);
  }
}

}  // namespace kernwright::python
