// Small helpers over the CPython API for all bindings: owned references, guarded calls.
#pragma once

#include "bindings/support/gil.h"

#include <pybind11/pybind11.h>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <utility>

namespace kernwright::python {

namespace py = pybind11;

/// Sets the Python error that `failure` means: ours by its class in kernwright.errors, pybind11's
/// and the standard library's as pybind11 has them. The GIL must be held.
void set_python_error(std::exception_ptr failure) noexcept;

/// Deletes an object that may call the driver or wait for a lock, with the GIL released. A thread
/// in the driver may need the GIL (a host function, a profiler of Python's frames) and hold a lock
/// that the deletion waits for.
struct UnlockedDelete {
  template <typename T>
  void operator()(T* object) const noexcept {
    if constexpr (requires { object->try_release(); }) {
      if (object->try_release()) return delete object;
    }
    const GilRelease unlocked;
    delete object;
  }
};

/// Holder of a pybind11 class whose C++ part owns no Python object except through keep_alive().
template <typename T>
using Unlocked = std::unique_ptr<T, UnlockedDelete>;

/// Runs `body` for a C slot of Python: an exception becomes the Python error and `failed` is
/// returned.
template <typename Result, typename Body>
Result guarded(Result failed, Body&& body) noexcept {
  try {
    const StopAtExit stop;
    return body();
  } catch (...) {
    set_python_error(std::current_exception());
    return failed;
  }
}

/// function(*arguments), for a call beside other objects of Python: see StopAtExit.
py::object call_python(py::handle function, const py::tuple& arguments);

/// A reference to `object` for C++, held and dropped on any thread, with or without the GIL.
std::shared_ptr<void> keep_alive(py::object object);

/// A member of a module of this package. Most callers have imported it already: an import statement
/// takes as long as all the rest of a small call when it runs for the first time.
py::object module_member(const char* module, const char* name);

/// An object of Python that is made once and kept for good; a static object of a function.
///
/// NOTE: a static variable that the function initialises holds a lock meanwhile. An import may give
/// up the GIL, and a thread that waits for the lock with the GIL would wait for ever.
class KeptObject {
 public:
  /// What the first call made. If several threads make an object at once, the first is kept.
  template <typename Make>
  py::handle get(const Make& make) {
    if (object_ == nullptr) {
      py::object made = make();
      if (object_ == nullptr) object_ = made.release().ptr();
    }
    return object_;
  }
  PyObject* member(const char* module, const char* name) {
    return get([&] { return module_member(module, name); }).ptr();
  }

 private:
  PyObject* object_ = nullptr;
};

/// Whether value.name is there. Exceptions of a property are passed on, but for an AttributeError.
bool has_attribute(py::handle value, const char* name);

/// A path as the file system has it, from a str, bytes or os.PathLike. Throws ArgumentError for
/// anything else, InvalidArgument for a path with a null character, where it would end for C.
std::string path_argument(py::handle path, const char* what);

/// A str without null characters, where a name would end for C. Throws ArgumentError for anything
/// that is no str, InvalidArgument for such a name.
std::string name_argument(py::handle name, const char* what);
/// The same check of a name in text form.
void require_whole_name(const std::string& name, const char* what);

/// The text of a py::cast_error, in the words of the caller.
std::string cast_failure_text(const py::cast_error& failure);

/// An instance of that collections.namedtuple, with all its fields.
py::object named_tuple(py::handle type, const py::tuple& fields);

/// "torch.Tensor", "float", "numpy.ndarray": how messages name the type of a value.
std::string type_name(py::handle value);

/// repr(value), cut to `limit` characters; never throws.
std::string short_repr(py::handle value, std::size_t limit = 60) noexcept;

/// The C++ object inside an instance whose type is exactly a pybind11 class without C++ bases.
template <typename T>
T* instance_value(PyObject* object) noexcept {
  auto* instance = reinterpret_cast<py::detail::instance*>(object);
  if (instance->simple_layout) return static_cast<T*>(instance->simple_value_holder[0]);
  return static_cast<T*>(instance->get_value_and_holder().value_ptr());
}

}  // namespace kernwright::python
