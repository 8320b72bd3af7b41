// From C++ exceptions to the classes of kernwright.errors, and the helpers of python_support.h.
#include "base/byte_text.h"
#include "base/errors.h"
#include "base/format.h"
#include "bindings/support/bindings.h"
#include "bindings/support/compile_limits.h"
#include "bindings/support/gil.h"
#include "bindings/support/python_support.h"
#include "core/graph/capture.h"
#include "core/partition.h"
#include "schedule/task.h"

namespace kernwright::python {
namespace {

/// kernwright.errors, imported once and kept for good.
py::handle errors_module() {
  static constinit KeptObject module;
  return module.get([] { return py::module_::import("kernwright.errors"); });
}

py::object diagnostic_object(const Diagnostic& diagnostic) {
  return errors_module().attr("Diagnostic")(severity_name(diagnostic.severity), diagnostic.message,
                                            diagnostic.file, diagnostic.line, diagnostic.column,
                                            diagnostic.caret, diagnostic.hint);
}

py::list string_list(const std::vector<std::string>& values) {
  py::list list;
  for (const std::string& value : values) list.append(text_object(value));
  return list;
}

void fill(py::object& error, const CompileError& e) {
  error.attr("diagnostics") = diagnostic_list(e.diagnostics);
  error.attr("log") = text_object(e.log);
  error.attr("source") = text_object(e.source);
  error.attr("options") = string_list(e.options);
}

void fill(py::object& error, const DriverError& e) {
  error.attr("code") = e.code;
  error.attr("name") = e.name;
}

void fill(py::object& error, const StoreError& e) { error.attr("errno") = e.code; }

void fill(py::object& error, const OutOfMemory& e) {
  error.attr("requested") = e.requested;
  error.attr("used") = e.used;
  error.attr("reserved") = e.reserved;
  error.attr("free") = e.free;
}

void fill(py::object& error, const PartitionError& e) {
  error.attr("needed") = e.needed;
  error.attr("free") = e.free;
  error.attr("minimum") = e.minimum;
  error.attr("alignment") = e.alignment;
}

void fill(py::object& error, const UnsupportedInstruction& e) {
  error.attr("opcode") = e.opcode;
  error.attr("line") = e.line;
}

void fill(py::object& error, const DeviceFault& e) {
  const Fault& report = e.report;
  error.attr("kind") = fault_kind_name(report.kind);
  error.attr("kernel") = text_object(report.kernel);
  error.attr("file") = text_object(report.file);
  error.attr("line") = report.line;
  error.attr("opcode") = report.opcode;
  error.attr("block") = py::make_tuple(report.block[0], report.block[1], report.block[2]);
  error.attr("thread") = py::make_tuple(report.thread[0], report.thread[1], report.thread[2]);
  error.attr("address") = report.address;
  error.attr("access_size") = report.access_size;
  error.attr("allocation") = text_object(report.allocation);
  error.attr("report") = text_object(e.what());
}

void fill(py::object&, const Error&) {}

/// Sets a new instance of kernwright.errors.<name>. Should that fail, the failure is set instead.
template <typename E>
void raise(const char* name, const E& e) {
  const py::object type = errors_module().attr(name);
  py::object error = call_python(type, py::make_tuple(text_object(e.what())));
  fill(error, e);
  PyErr_SetObject(type.ptr(), error.ptr());
}

template <typename E>
bool raise_if(const char* name, const Error& e) {
  const auto* found = dynamic_cast<const E*>(&e);
  if (found != nullptr) raise(name, *found);
  return found != nullptr;
}

/// The early end of a wait for a compile, or of a task.
bool raise_if_stopped(const Error& e) {
  if (dynamic_cast<const Interrupted*>(&e) != nullptr) {
    restore_interrupt();
    return true;
  }
  if (dynamic_cast<const Cancelled*>(&e) == nullptr &&
      dynamic_cast<const schedule::TaskCancelled*>(&e) == nullptr) {
    return false;
  }
  const py::object type = module_member("concurrent.futures", "CancelledError");
  PyErr_SetString(type.ptr(), e.what());
  return true;
}

void raise_error(const Error& e) {
  if (raise_if_stopped(e)) return;
  // Derived classes before their bases.
  const bool done =
      raise_if<CompileError>("CompileError", e) || raise_if<ArgumentError>("ArgumentError", e) ||
      raise_if<ArgumentRangeError>("ArgumentRangeError", e) ||
      raise_if<AxisError>("AxisError", e) || raise_if<InvalidArgument>("InvalidArgument", e) ||
      raise_if<LaunchConfigError>("LaunchConfigError", e) ||
      raise_if<NameNotFound>("NameNotFound", e) || raise_if<DriverNotFound>("DriverNotFound", e) ||
      raise_if<NvrtcNotFound>("NvrtcNotFound", e) || raise_if<schedule::Refused>("Refused", e) ||
      raise_if<DeviceNotFound>("DeviceNotFound", e) || raise_if<DeviceLost>("DeviceLost", e) ||
      raise_if<CaptureError>("CaptureError", e) || raise_if<DriverError>("DriverError", e) ||
      raise_if<PartitionError>("PartitionError", e) || raise_if<OutOfMemory>("OutOfMemory", e) ||
      raise_if<DeviceFault>("DeviceFault", e) || raise_if<Timeout>("Timeout", e) ||
      raise_if<StoreError>("StoreError", e) ||
      raise_if<UnsupportedInstruction>("UnsupportedInstruction", e) ||
      raise_if<NotSliceable>("NotSliceable", e);
  if (!done) raise("Error", e);
}

}  // namespace

py::object text_object(const std::string& text) {
  PyObject* object =
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace");
  if (object == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(object);
}

py::list diagnostic_list(const std::vector<Diagnostic>& diagnostics) {
  py::list list;
  for (const Diagnostic& diagnostic : diagnostics) list.append(diagnostic_object(diagnostic));
  return list;
}

void set_python_error(std::exception_ptr failure) noexcept {
  const StopAtExit stop;
  try {
    std::rethrow_exception(std::move(failure));
  } catch (py::error_already_set& e) {
    e.restore();
  } catch (const py::cast_error& e) {
    raise("ArgumentError", ArgumentError(cast_failure_text(e)));
  } catch (const py::builtin_exception& e) {
    e.set_error();
  } catch (const Error& e) {
    try {
      raise_error(e);
    } catch (py::error_already_set& second) {
      second.restore();
    }
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, "an exception of unknown type");
  }
}

py::object call_python(py::handle function, const py::tuple& arguments) {
  PyObject* result = nullptr;
  {
    const StopAtExit stop;
    result = PyObject_CallObject(function.ptr(), arguments.ptr());
  }
  if (result == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(result);
}

std::shared_ptr<void> keep_alive(py::object object) {
  return {object.release().ptr(), [](void* held) {
            // While the interpreter ends the reference is left to the process's end.
            const GilAcquire locked;
            if (locked) Py_DECREF(static_cast<PyObject*>(held));
          }};
}

py::object module_member(const char* module, const char* name) {
  const auto known = py::reinterpret_steal<py::object>(PyImport_GetModule(py::str(module).ptr()));
  // One under import by another thread may lack the member, and importing waits for it.
  const py::object member = known ? py::getattr(known, name, py::none()) : py::none();
  if (!member.is_none()) return member;
  const StopAtExit stop;
  return py::module_::import(module).attr(name);
}

bool has_attribute(py::handle value, const char* name) {
  const auto found = py::reinterpret_steal<py::object>(PyObject_GetAttrString(value.ptr(), name));
  if (found) return true;
  const py::error_already_set error;
  if (!error.matches(PyExc_AttributeError)) throw error;
  return false;
}

void require_whole_name(const std::string& name, const char* what) {
  if (name.find('\0') == std::string::npos) return;
  throw InvalidArgument(
      format("{} {} has a null character, which no name has", what, short_repr(text_object(name))));
}

std::string name_argument(py::handle name, const char* what) {
  if (!PyUnicode_Check(name.ptr())) {
    throw ArgumentError(format("{} is a str, got {} {}", what, type_name(name), short_repr(name)));
  }
  Py_ssize_t length = 0;
  const char* const bytes = PyUnicode_AsUTF8AndSize(name.ptr(), &length);
  if (bytes == nullptr) {
    const py::error_already_set error;
    if (!error.matches(PyExc_UnicodeEncodeError)) throw error;
    throw InvalidArgument(format("{} {} has a lone surrogate at index {}, which no name has", what,
                                 short_repr(name), error.value().attr("start").cast<Py_ssize_t>()));
  }
  const std::string text(bytes, static_cast<std::size_t>(length));
  require_whole_name(text, what);
  return text;
}

std::string path_argument(py::handle path, const char* what) {
  const auto spelled = py::reinterpret_steal<py::object>(PyOS_FSPath(path.ptr()));
  if (!spelled) {
    const py::error_already_set error;
    if (!error.matches(PyExc_TypeError)) throw error;
    throw ArgumentError(
        format("{}: a path is a str or an os.PathLike, got {}", what, type_name(path)));
  }
  PyObject* encoded =
      nullptr;  // NOTE: PyUnicode_FSConverter would call a null character a ValueError
  if (PyUnicode_Check(spelled.ptr())) {
    encoded = PyUnicode_EncodeFSDefault(spelled.ptr());
  } else {
    encoded = spelled.inc_ref().ptr();
  }
  if (encoded == nullptr) throw py::error_already_set();
  const auto bytes = py::reinterpret_steal<py::bytes>(encoded);
  std::string text(bytes);
  if (text.find('\0') != std::string::npos) {
    throw InvalidArgument(format("{}: the path {} has a null character, which no file name has",
                                 what, short_repr(path)));
  }
  return text;
}

std::string cast_failure_text(const py::cast_error& failure) {
  // "Unable to cast Python instance of type <class 'str'> to C++ type '?' (...)"
  const std::string text = failure.what();
  const std::size_t at = text.find("<class '");
  const std::size_t end = text.find("'>", at);
  if (at == std::string::npos || end == std::string::npos) return "a value of a wrong type";
  std::string type = text.substr(at + 8, end - at - 8);
  if (type.starts_with("kernwright.")) type = "kw" + type.substr(type.rfind('.'));
  if (type == "int") return "an int that is out of range, or where none belongs";
  return format("a value of type {} where another type is wanted", type);
}

py::object named_tuple(py::handle type, const py::tuple& fields) {
  // The work of its own __new__, a function of Python.
  const py::tuple arguments = py::make_tuple(fields);
  auto* const tuple_type = reinterpret_cast<PyTypeObject*>(type.ptr());
  auto made =
      py::reinterpret_steal<py::object>(PyTuple_Type.tp_new(tuple_type, arguments.ptr(), nullptr));
  if (!made) throw py::error_already_set();
  return made;
}

std::string type_name(py::handle value) {
  const py::handle type(reinterpret_cast<PyObject*>(Py_TYPE(value.ptr())));
  const auto module = py::str(type.attr("__module__")).cast<std::string>();
  const auto name = py::str(type.attr("__qualname__")).cast<std::string>();
  if (module.starts_with("kernwright.")) return "kw." + name;
  return module == "builtins" ? name : module + "." + name;
}

std::string short_repr(py::handle value, std::size_t limit) noexcept {
  try {
    const StopAtExit stop;
    auto text = py::repr(value).cast<std::string>();
    if (text.size() > limit) text = text.substr(0, limit) + "...";
    return text;
  } catch (...) {
    PyErr_Clear();
    return "a value without repr";
  }
}

void bind_base(py::module_& m) {
  m.attr("__version__") = KERNWRIGHT_VERSION;
  m.def(
      "_path",
      [](const py::object& path, const char* what) {
        const std::string bytes = path_argument(path, what);
        return py::reinterpret_steal<py::object>(
            PyUnicode_DecodeFSDefaultAndSize(bytes.data(), static_cast<Py_ssize_t>(bytes.size())));
      },
      py::arg("path"), py::arg("what"));
  m.def("_describe_bytes", &describe_bytes, py::arg("bytes"));
  py::register_exception_translator([](std::exception_ptr failure) {
    const StopAtExit stop;
    try {
      if (failure) std::rethrow_exception(failure);
    } catch (const Error& e) {
      raise_error(e);
    } catch (const py::cast_error& e) {
      PyErr_SetString(PyExc_TypeError, cast_failure_text(e).c_str());
    }
  });
}

}  // namespace kernwright::python
