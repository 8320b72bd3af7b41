// Requests for kernels that were made before, and where a text stands. A loop may call kernel()
// with its text each time: such a call takes 1.1 us here and 2.1 us in Python (beside an H100;
// bench/cache_cost.py measures it). _jit/recent.py says what is remembered.
#include "bindings/support/bindings.h"
#include "bindings/support/gil.h"
#include "jit/source/text_lines.h"

#include <pybind11/stl.h>
#include <atomic>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kernwright::python {
namespace {

/// The memory of _jit/recent.py. Written once, with the GIL, and kept to the end of the process.
struct Recent {
  PyObject* kernels = nullptr;  ///< the OrderedDict
  PyObject* move_to_end = nullptr;
  std::atomic<std::uint64_t> hits = 0;
};

Recent& recent() {
  static auto& instance = *new Recent;
  return instance;
}

template <typename T>
py::object steal(T* object) {
  return py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(object));
}

std::optional<std::string_view> utf8(py::handle text) {
  Py_ssize_t size = 0;
  const char* const bytes = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
  if (bytes != nullptr) return std::string_view(bytes, static_cast<std::size_t>(size));
  PyErr_Clear();  // lone surrogates
  return std::nullopt;
}

/// No lines for a text with lone surrogates (no file has those), and for an invalid path.
std::vector<int> lines_in_file(py::handle path, py::handle text) {
  const std::optional<std::string_view> bytes = utf8(text);
  PyObject* encoded = nullptr;
  if (!bytes || PyUnicode_FSConverter(path.ptr(), &encoded) == 0) {
    PyErr_Clear();
    return {};
  }
  const std::string name = py::reinterpret_steal<py::bytes>(encoded);
  const GilRelease unlocked;
  return lines_of_text(name, *bytes);
}

/// The remembered kernel of an equal request.
py::object find(const py::tuple& key) {
  Recent& known = recent();
  const auto found =
      py::reinterpret_borrow<py::object>(PyDict_GetItemWithError(known.kernels, key.ptr()));
  if (!found) {
    if (PyErr_Occurred() != nullptr) throw py::error_already_set();
    return {};
  }
  const auto moved = py::reinterpret_steal<py::object>(
      PyObject_CallMethodObjArgs(known.kernels, known.move_to_end, key.ptr(), nullptr));
  if (!moved) {
    const py::error_already_set error;
    if (!error.matches(PyExc_KeyError)) throw error;  // forgotten meanwhile
  }
  ++known.hits;
  return found;
}

/// The kernel that the caller got for this text and name before, on the same line; else None.
py::object recent_kernel(const py::object& source, const py::object& name) {
  if (!PyUnicode_CheckExact(source.ptr()) || recent().kernels == nullptr) return py::none();
  if (!name.is_none() && !PyUnicode_CheckExact(name.ptr())) return py::none();
  PyFrameObject* const own = PyEval_GetFrame();
  const py::object caller = own != nullptr ? steal(PyFrame_GetBack(own)) : py::object();
  if (!caller) return py::none();
  auto* const frame = reinterpret_cast<PyFrameObject*>(caller.ptr());
  const py::object code = steal(PyFrame_GetCode(frame));
  PyObject* const file = reinterpret_cast<PyCodeObject*>(code.ptr())->co_filename;
  const py::int_ line(PyFrame_GetLineNumber(frame));
  const auto key =
      py::reinterpret_steal<py::tuple>(PyTuple_Pack(4, source.ptr(), name.ptr(), file, line.ptr()));
  if (!key) throw py::error_already_set();
  const py::object found = find(key);
  return found ? found : py::none();
}

void use_recent(const py::object& kernels) {
  Recent& known = recent();
  known.kernels = py::object(kernels).release().ptr();
  known.move_to_end = PyUnicode_InternFromString("move_to_end");
}

}  // namespace

void bind_request(py::module_& m) {
  m.def("_lines_in_file", &lines_in_file, py::arg("path"), py::arg("text"));
  m.def("_use_recent", &use_recent, py::arg("kernels"));
  m.def("_recent_kernel", &recent_kernel, py::arg("source"), py::arg("name"));
  m.def("_recent_hits", [] { return recent().hits.load(); });
}

}  // namespace kernwright::python
