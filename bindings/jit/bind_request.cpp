// kernel() for most requests: a text alone, found byte for byte in the caller's file or in no file
// at all. Here without Python's interpreter: that saves 0.1 ms of the 0.5 ms from a text to its
// kernel on the disk in a new process (beside an H100). _jit/kernels.py does the rest, and the same
// for all other requests.
#include "bindings/jit/program_object.h"
#include "bindings/launch/kernel_object.h"
#include "bindings/support/bindings.h"
#include "bindings/support/gil.h"
#include "jit/source/text_lines.h"

#include <pybind11/stl.h>
#include <algorithm>
#include <atomic>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kernwright::python {
namespace {

/// Frames above the caller to search for the text, as in _jit/source.py.
constexpr int kFrames = 6;

/// The memory of _jit/recent.py. Written once, with the GIL, and kept to the end of the process.
struct Recent {
  PyObject* kernels = nullptr;  ///< the OrderedDict
  PyObject* move_to_end = nullptr;
  Py_ssize_t limit = 0;
  std::vector<std::string> hints;  ///< a text with one of these may have state of its own
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

/// A frame of Python, its file and its line.
struct Frame {
  explicit Frame(py::object held)
      : frame(std::move(held)),
        code(steal(PyFrame_GetCode(get()))),
        file(reinterpret_cast<PyCodeObject*>(code.ptr())->co_filename) {}

  PyFrameObject* get() const { return reinterpret_cast<PyFrameObject*>(frame.ptr()); }
  int line() const { return PyFrame_GetLineNumber(get()); }

  py::object frame, code;
  py::handle file;
};

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

/// Whether linecache keeps the input of an interactive session under that name.
bool is_kept(py::handle name) {
  const auto linecache =
      py::reinterpret_steal<py::object>(PyImport_GetModule(py::str("linecache").ptr()));
  if (!linecache) return false;
  const py::object cache = py::getattr(linecache, "cache", py::none());
  return !cache.is_none() && cache.contains(name);
}

/// The file and first line of the text; nothing where only _jit/source.py can tell.
std::optional<std::pair<std::string, int>> locate(py::handle text, const Frame& caller) {
  std::vector<std::string> searched;
  Frame frame = caller;
  for (int i = 0; i < kFrames; ++i) {
    const std::optional<std::string_view> name = utf8(frame.file);
    if (!name || name->find_first_of("\n\r") != std::string_view::npos) return std::nullopt;
    if (std::find(searched.begin(), searched.end(), *name) == searched.end()) {
      searched.emplace_back(*name);
      if (name->starts_with('<') && name->ends_with('>')) {
        if (is_kept(frame.file)) return std::nullopt;
      } else {
        const std::vector<int> lines = lines_in_file(frame.file, text);
        if (lines.empty()) return std::nullopt;
        // The same text may be written down twice: the one nearest above the call is meant.
        const auto below = std::upper_bound(lines.begin(), lines.end(), frame.line());
        return std::pair(std::string(*name), below == lines.begin() ? *below : *(below - 1));
      }
    }
    py::object outer = steal(PyFrame_GetBack(frame.get()));
    if (!outer) break;
    frame = Frame(std::move(outer));
  }
  return std::pair(std::string("<string>"), 1);
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

/// The kernel, or None where the request is not of the plain kind.
py::object plain_kernel(const py::object& source, const py::object& name) {
  Recent& known = recent();
  if (!PyUnicode_CheckExact(source.ptr()) || known.kernels == nullptr) return py::none();
  if (!name.is_none() && !PyUnicode_CheckExact(name.ptr())) return py::none();
  PyFrameObject* const current = PyEval_GetFrame();
  py::object outer = current != nullptr ? steal(PyFrame_GetBack(current)) : py::object();
  if (!outer) return py::none();
  const Frame caller(std::move(outer));
  const py::int_ line(caller.line());
  const auto key = py::reinterpret_steal<py::tuple>(
      PyTuple_Pack(4, source.ptr(), name.ptr(), caller.file.ptr(), line.ptr()));
  if (!key) throw py::error_already_set();
  if (py::object found = find(key)) return found;
  const std::optional<std::string_view> text = utf8(source);
  if (!text || text->find_first_not_of(" \t\r\n\f\v") == std::string_view::npos ||
      PyDict_Size(known.kernels) >= known.limit) {
    return py::none();
  }
  if (text->find('{') == std::string_view::npos) return py::none();  // a path, perhaps
  for (const std::string& hint : known.hints) {
    if (text->find(hint) != std::string_view::npos) return py::none();
  }
  const auto place = locate(source, caller);
  const std::optional<std::string_view> wanted = name.is_none() ? std::string_view() : utf8(name);
  if (!place || !wanted) return py::none();
  const py::object program =
      py::cast(make_program({std::string(*text), place->first, place->second, {}}, py::none()));
  py::object made = py::cast(
      make_kernel(program.cast<const ProgramObject&>().program, std::string(*wanted), program));
  if (PyObject_SetItem(known.kernels, key.ptr(), made.ptr()) != 0) throw py::error_already_set();
  return made;
}

void use_recent(const py::object& kernels, Py_ssize_t limit, std::vector<std::string> hints) {
  Recent& known = recent();
  known.kernels = py::object(kernels).release().ptr();
  known.move_to_end = PyUnicode_InternFromString("move_to_end");
  known.limit = limit;
  known.hints = std::move(hints);
}

}  // namespace

void bind_request(py::module_& m) {
  m.def("_lines_in_file", &lines_in_file, py::arg("path"), py::arg("text"));
  m.def("_use_recent", &use_recent, py::arg("kernels"), py::arg("limit"), py::arg("hints"));
  m.def("_plain_kernel", &plain_kernel, py::arg("source"), py::arg("name"));
  m.def("_plain_hits", [] { return recent().hits.load(); });
}

}  // namespace kernwright::python
