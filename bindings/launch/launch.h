// Launching from Python: kernel[grid, block](...) as a CPython type with vectorcall.
#pragma once

#include "bindings/launch/kernel_object.h"
#include "bindings/launch/thread_extents.h"
#include "bindings/support/gil.h"
#include "core/launch/launch_config.h"

#include <pybind11/pybind11.h>

namespace kernwright::python {

namespace py = pybind11;

/// Makes the type of bound configurations; called once at import.
void make_bound_type(py::module_& m);

/// The kernel inside a Python object of that class. Throws ArgumentError for a half-made one.
KernelObject& cast_kernel(PyObject* kernel);

/// kernel[key]: a BoundKernel. Null with a Python error set when the key is wrong.
PyObject* bind_subscript(PyObject* kernel, PyObject* key) noexcept;

/// kernel.forall(n): grid and block are chosen at each call.
py::object bind_forall(const py::object& kernel, const ThreadExtents& extents,
                       const py::object& stream, std::uint32_t shared_bytes);

/// Converts and checks `count` arguments, then queues the kernel. An empty stream in `config` means
/// the current one. With `extents` of any axes grid and block are chosen for so many threads.
void launch(KernelObject& kernel, const LaunchConfig& config, PyObject* const* arguments,
            std::size_t count, const ThreadExtents& extents = {});

/// kw.LaunchConfig: plain fields as given; the stream is looked up at the launch.
struct LaunchConfigObject {
  LaunchConfigObject() = default;
  LaunchConfigObject(const LaunchConfigObject&) = default;
  LaunchConfigObject(LaunchConfigObject&&) = default;
  LaunchConfigObject& operator=(const LaunchConfigObject&) = default;
  LaunchConfigObject& operator=(LaunchConfigObject&&) = default;
  ~LaunchConfigObject() {
    if (config.stream || config.programmatic_event || config.launch_completion_event) {
      drop_without_gil(config);
    }
  }
  LaunchConfig config;
  py::object stream = py::none();
};

/// A launch that adopts a stream object of `device`; see stream_argument().
LaunchConfig resolved(const LaunchConfigObject& object);

}  // namespace kernwright::python
