// Kernel for Python, the launch configuration as an object, and the wrappers of arguments.
#include "base/errors.h"
#include "base/format.h"
#include "bindings/launch/kernel_object.h"
#include "bindings/launch/kernel_report.h"
#include "bindings/launch/launch.h"
#include "bindings/support/bindings.h"
#include "bindings/support/compile_limits.h"
#include "bindings/support/current.h"
#include "bindings/support/gil.h"
#include "bindings/support/python_support.h"
#include "bindings/values/array_support.h"
#include "bindings/values/dtype.h"
#include "core/device.h"
#include "core/runtime.h"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>
#include <optional>
#include <utility>
#include <vector>

namespace kernwright::python {
namespace {

const Kernel& loaded(KernelObject& self) { return self.plan(current_device()).kernel; }

std::shared_ptr<const ObjectCode> find_code(const KernelObject& self, Device& device) {
  const GilRelease unlocked;
  return self.code(device);
}

/// The kernel's code in another form than the running one, compiled for the same architecture.
std::string code_as(const KernelObject& self, CodeKind kind) {
  Device& device = current_device();
  const auto code = find_code(self, device);
  if (code->kind == kind) return code->code;
  if (kind == CodeKind::cubin && !code->resource_cubin.empty()) return code->resource_cubin;
  if (!self.lazy() || self.lazy()->program().loaded_code()) {
    throw Error(format("{}: object code loaded from a file has no {}", self.name(),
                       kind == CodeKind::ptx ? "PTX" : "cubin"));
  }
  const GilRelease unlocked;
  const Program& program = self.lazy()->program();
  ProgramOptions options = program.options();
  if (options.arch.empty()) {
    const int number = device.compute_capability().number();
    options.arch = format("{}_{}", kind == CodeKind::ptx ? "compute" : "sm", number);
  }
  return Program(program.source(), options).compile(kind, {self.name()}).code;
}

const char* kind_name(ParameterKind kind) {
  switch (kind) {
    case ParameterKind::scalar:
      return "scalar";
    case ParameterKind::pointer:
      return "pointer";
    case ParameterKind::vector:
      return "vector";
    case ParameterKind::untyped:
      return "untyped";
    default:
      return "aggregate";
  }
}

py::list parameter_list(KernelObject& self) {
  const py::object type = module_member("kernwright._jit.kernels", "Parameter");
  py::list list;
  for (const Parameter& p : loaded(self).signature().parameters) {
    py::object dtype = py::none();
    if (p.scalar) {
      dtype = dtype_object(*p.scalar);
    } else if (!p.fields.empty()) {
      dtype = struct_dtype(p);
    }
    list.append(named_tuple(
        type,
        py::make_tuple(text_object(p.name), text_object(p.type), kind_name(p.kind), dtype, p.lanes,
                       p.size, p.offset, p.kind == ParameterKind::pointer && p.pointee_const,
                       opaque_parts(p))));
  }
  return list;
}

py::object kernel_attributes(KernelObject& self) {
  const KernelAttributes& a = loaded(self).attributes();
  return named_tuple(module_member("kernwright._jit.kernels", "KernelAttributes"),
                     py::make_tuple(a.registers, a.shared_bytes, a.local_bytes, a.constant_bytes,
                                    a.max_threads_per_block));
}

/// kernel.launch(config, *arguments), with vectorcall's conventions.
PyObject* kernel_launch(PyObject* self, PyObject* const* arguments, Py_ssize_t count,
                        PyObject* keywords) {
  return guarded<PyObject*>(nullptr, [&] {
    if (keywords != nullptr && PyTuple_GET_SIZE(keywords) != 0) {
      throw ArgumentError("arguments of a kernel are positional, got the keyword " +
                          short_repr(PyTuple_GET_ITEM(keywords, 0)));
    }
    if (count < 1 || !py::isinstance<LaunchConfigObject>(arguments[0])) {
      throw ArgumentError("launch(config, *arguments): the first must be a kw.LaunchConfig" +
                          (count < 1 ? std::string() : ", got " + type_name(arguments[0])));
    }
    const auto* config = py::handle(arguments[0]).cast<const LaunchConfigObject*>();
    launch(cast_kernel(self), resolved(*config), arguments + 1,
           static_cast<std::size_t>(count - 1));
    Py_RETURN_NONE;
  });
}

PyObject* kernel_call(PyObject* self, PyObject*, PyObject*) {
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    const std::string& name = cast_kernel(self).name();
    throw ArgumentError(
        format("{0}: a launch needs its configuration: {0}[grid, block](...) or "
               "{0}.forall(n)(...)",
               name));
  });
}

/// Gives pybind11's type the slots for quick calls.
void set_slots(PyHeapTypeObject* heap_type) {
  static PyMethodDef methods[] = {
      {"launch", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&kernel_launch)),
       METH_FASTCALL | METH_KEYWORDS, "launch(config, *arguments)"},
      {nullptr, nullptr, 0, nullptr},
  };
  heap_type->ht_type.tp_methods = methods;
  heap_type->ht_type.tp_call = &kernel_call;
  heap_type->as_mapping.mp_subscript = &bind_subscript;
}

void define_inspection(py::class_<KernelObject>& type) {
  type.def_property_readonly("name", [](const KernelObject& k) { return text_object(k.name()); })
      .def_property_readonly(
          "signature",
          [](KernelObject& k) { return text_object(loaded(k).signature().to_string()); })
      .def_property_readonly("parameters", &parameter_list)
      .def_property_readonly("attributes", &kernel_attributes)
      .def_property_readonly(
          "ptx", [](const KernelObject& k) { return text_object(code_as(k, CodeKind::ptx)); })
      .def_property_readonly(
          "cubin", [](const KernelObject& k) { return py::bytes(code_as(k, CodeKind::cubin)); })
      .def_property_readonly("sass",
                             [](const KernelObject& k) {
                               return py::module_::import("kernwright._jit.disassembly")
                                   .attr("sass")(py::bytes(code_as(k, CodeKind::cubin)));
                             })
      .def_property_readonly(
          "log",
          [](const KernelObject& k) { return text_object(find_code(k, current_device())->log); })
      .def(
          "occupancy",
          [](KernelObject& k, int block, const py::object& shared_bytes) {
            if (block < 1) {
              throw LaunchConfigError(format(
                  "kw.Kernel.occupancy(): block of {}: a block has at least 1 thread", block));
            }
            const std::uint32_t bytes = shared_bytes_argument(shared_bytes.ptr());
            const Kernel& kernel = loaded(k);
            return without_gil([&] { return kernel.occupancy(block, bytes); });
          },
          py::arg("block"), py::arg("shared_bytes") = 0)
      .def(
          "suggest_block",
          [](KernelObject& k, const py::object& shared_bytes) {
            const std::uint32_t bytes = shared_bytes_argument(shared_bytes.ptr());
            const Kernel& kernel = loaded(k);
            return without_gil([&] { return kernel.suggest_block(bytes); });
          },
          py::arg("shared_bytes") = 0);
}

py::object compile_kernel(const py::object& self, const py::object& device,
                          const py::object& timeout, const StopObject* stop) {
  const WaitScope scope(wait_limits_argument(timeout, stop));
  self.cast<KernelObject&>().plan(device_argument(device));
  return self;
}

void bind_kernel(py::module_& m) {
  py::class_<KernelObject> type(m, "Kernel", py::custom_type_setup(&set_slots));
  define_inspection(type);
  type.def(
          "compile",
          [](const py::object& self, const py::object& device, const py::object& timeout) {
            return compile_kernel(self, device, timeout, nullptr);
          },
          py::arg("device") = py::none(), py::arg("timeout") = py::none())
      .def("_facts", &kernel_facts, py::arg("device"))
      .def("_profile", &kernel_profile, py::arg("device"))
      .def(
          "report",
          [](const py::object& self, const py::object& device, bool phases) {
            return module_member("kernwright._jit.report", "report")(self, device, phases);
          },
          py::arg("device") = py::none(), py::arg("phases") = true)
      .def("_compile", &compile_kernel, py::arg("device"), py::arg("timeout"), py::arg("stop"))
      .def(
          "compile_async",
          [](const py::object& self, const py::object& device) {
            return py::module_::import("kernwright._jit.background")
                .attr("compile_async")(self, device);
          },
          py::arg("device") = py::none())
      .def(
          "forall",
          [](const py::object& self, const py::object& n, const py::object& stream,
             const py::object& shared_bytes) {
            return bind_forall(self, thread_extents_argument(n), stream,
                               shared_bytes_argument(shared_bytes.ptr()));
          },
          py::arg("n"), py::arg("stream") = py::none(), py::arg("shared_bytes") = 0)
      .def("tuned",
           [](const py::object& self, const py::args& args, const py::kwargs& kwargs) {
             return module_member("kernwright.tune._tuned", "Tuned")(self, *args, **kwargs);
           })
      .def("online",
           [](const py::object& self, const py::args& args, const py::kwargs& kwargs) {
             return module_member("kernwright.tune._online", "Online")(self, *args, **kwargs);
           })
      .def(
          "slice",
          [](const py::object& self, const py::object& max_blocks) {
            return module_member("kernwright._jit.slices", "SlicedKernel")(self, max_blocks);
          },
          py::arg("max_blocks"))
      .def(
          "yielding",
          [](const py::object& self, const py::object& words) {
            return module_member("kernwright._jit.slices", "YieldingKernel")(self, words);
          },
          py::arg("words"))
      .def("__repr__",
           [](const KernelObject& k) { return text_object("<Kernel " + k.described() + ">"); })
      .def(
          "max_cluster",
          [](KernelObject& k, int block, std::size_t shared_bytes) {
            return loaded(k).max_cluster(block, shared_bytes);
          },
          py::arg("block"), py::arg("shared_bytes") = 0)
      .def(
          "active_clusters",
          [](KernelObject& k, const LaunchConfigObject& config) {
            return loaded(k).active_clusters(config.config);
          },
          py::arg("config"))
      .def("__reduce__",
           [](const py::object& self) {
             return module_member("kernwright._jit.kernels", "reduce_kernel")(self);
           })
      .def_property_readonly("_program",
                             [](const KernelObject& k) -> py::object {
                               return k.origin() ? k.origin() : py::object(py::none());
                             })
      .def_property_readonly("_code", [](const KernelObject& k) -> py::object {
        if (k.lazy()) return py::none();
        return py::cast(*find_code(k, current_device()));
      });
}

/// "cluster": None or up to three extents; no cluster is all zeros.
Dim3 cluster_argument(const py::object& value) {
  return value.is_none() ? Dim3{0, 0, 0} : dim3_argument(value.ptr(), "a cluster");
}

py::tuple shape_tuple(const Dim3& extents) {
  return py::make_tuple(extents.x, extents.y, extents.z);
}

/// kw.checked(enabled): at once, and back again where a `with` ends.
struct CheckedScope {
  bool before;
};

void bind_checked(py::module_& m) {
  py::class_<CheckedScope>(m, "checked")
      .def(py::init([](bool enabled) { return CheckedScope{set_checks_arguments(enabled)}; }),
           py::arg("enabled").noconvert(),
           "Whether launches check their array arguments, for the whole process from now on; as a "
           "context manager until the end of the block. Without checks a wrong dtype, device or "
           "layout reaches the kernel as it is; the number of arguments, their kinds and the range "
           "of numbers are always checked.")
      .def("__enter__", [](py::handle) {})
      .def("__exit__",
           [](const CheckedScope& scope, const py::args&) { set_checks_arguments(scope.before); });
}

void bind_config(py::module_& m) {
  using Object = LaunchConfigObject;
  py::class_<Object>(m, "LaunchConfig")
      .def(py::init([](const py::object& grid, const py::object& block, const py::object& stream,
                       const py::object& shared_bytes, const py::object& cluster, bool cooperative,
                       int priority, bool programmatic_dependent,
                       const std::optional<Event>& programmatic_event,
                       bool programmatic_event_at_start,
                       const std::optional<Event>& launch_completion_event) {
             Object object;
             object.config.grid = dim3_argument(grid.ptr(), "a grid");
             object.config.block = dim3_argument(block.ptr(), "a block");
             object.config.shared_bytes = shared_bytes_argument(shared_bytes.ptr());
             object.config.cluster = cluster_argument(cluster);
             object.config.cooperative = cooperative;
             object.config.priority = priority;
             object.config.programmatic_dependent = programmatic_dependent;
             object.config.programmatic_event = programmatic_event;
             object.config.programmatic_event_at_start = programmatic_event_at_start;
             object.config.launch_completion_event = launch_completion_event;
             object.stream = stream;
             return object;
           }),
           py::arg("grid"), py::arg("block"), py::arg("stream") = py::none(),
           py::arg("shared_bytes") = 0, py::arg("cluster") = py::none(),
           py::arg("cooperative") = false, py::arg("priority") = 0,
           py::arg("programmatic_dependent") = false, py::arg("programmatic_event") = py::none(),
           py::arg("programmatic_event_at_start") = false,
           py::arg("launch_completion_event") = py::none())
      .def_property_readonly("grid", [](const Object& o) { return shape_tuple(o.config.grid); })
      .def_property_readonly("block", [](const Object& o) { return shape_tuple(o.config.block); })
      .def_property_readonly("stream", [](const Object& o) { return o.stream; })
      .def_property_readonly("shared_bytes", [](const Object& o) { return o.config.shared_bytes; })
      .def_property_readonly("cluster",
                             [](const Object& o) -> py::object {
                               if (o.config.cluster.x == 0) return py::none();
                               return shape_tuple(o.config.cluster);
                             })
      .def_property_readonly("cooperative", [](const Object& o) { return o.config.cooperative; })
      .def_property_readonly("priority", [](const Object& o) { return o.config.priority; })
      .def_property_readonly("programmatic_dependent",
                             [](const Object& o) { return o.config.programmatic_dependent; })
      .def_property_readonly("programmatic_event",
                             [](const Object& o) { return o.config.programmatic_event; })
      .def_property_readonly("programmatic_event_at_start",
                             [](const Object& o) { return o.config.programmatic_event_at_start; })
      .def_property_readonly("launch_completion_event",
                             [](const Object& o) { return o.config.launch_completion_event; })
      .def("__repr__", [](const Object& o) {
        const Dim3 &g = o.config.grid, &b = o.config.block;
        return format("LaunchConfig(grid=({}, {}, {}), block=({}, {}, {}), shared_bytes={})", g.x,
                      g.y, g.z, b.x, b.y, b.z, o.config.shared_bytes);
      });
}

/// Host values for kw.In: anything NumPy can see as an array, without an element type change.
py::object host_values(const py::object& values, const char* wrapper) {
  if (!py::isinstance<py::array>(values))
    throw ArgumentError(format("kw.{} takes a NumPy array, got {}", wrapper, type_name(values)));
  const bool is_plain = Py_TYPE(values.ptr()) == py::detail::npy_api::get().PyArray_Type_;
  if (!is_plain &&
      module_member("kernwright._array.host_values", "is_masked")(values).cast<bool>()) {
    throw ArgumentError(
        format("kw.{} got a masked array: fill the masked elements first, or pass "
               "its data without the mask",
               wrapper));
  }
  return values;
}

py::object writable(py::object values, const char* wrapper) {
  if (!values.attr("flags").attr("writeable").cast<bool>()) {
    throw ArgumentError(format("kw.{}: the NumPy array is read-only", wrapper));
  }
  return values;
}

struct InArgument : HostArgument {};
struct OutArgument : HostArgument {};
struct InOutArgument : HostArgument {};

void bind_wrappers(py::module_& m) {
  py::class_<HostArgument>(m, "HostArgument")
      .def_property_readonly("array", [](const HostArgument& h) { return h.values; });
  py::class_<InArgument, HostArgument>(m, "In").def(
      py::init([](const py::object& array) {
        return InArgument{{host_values(array, "In"), true, false}};
      }),
      py::arg("array"));
  py::class_<OutArgument, HostArgument>(m, "Out").def(
      py::init([](const py::object& array) {
        return OutArgument{{writable(host_values(array, "Out"), "Out"), false, true}};
      }),
      py::arg("array"));
  py::class_<InOutArgument, HostArgument>(m, "InOut")
      .def(py::init([](const py::object& array) {
             return InOutArgument{{writable(host_values(array, "InOut"), "InOut"), true, true}};
           }),
           py::arg("array"));
  py::class_<PointerArgument>(m, "Pointer")
      .def(py::init([](const py::object& address, const py::object& dtype) {
             if (PyBool_Check(address.ptr()) || !PyIndex_Check(address.ptr())) {
               throw ArgumentError("kw.Pointer(address, dtype) wants an int, got " +
                                   type_name(address));
             }
             PointerArgument pointer{py::int_(address).cast<std::uintptr_t>(), std::nullopt};
             if (!dtype.is_none()) pointer.type = scalar_argument(dtype);
             return pointer;
           }),
           py::arg("address"), py::arg("dtype") = py::none())
      .def_property_readonly("address", [](const PointerArgument& p) { return p.address; })
      .def_property_readonly("dtype",
                             [](const PointerArgument& p) -> py::object {
                               if (!p.type) return py::none();
                               return dtype_object(*p.type);
                             })
      .def("__repr__",
           [](const PointerArgument& p) { return format("Pointer({:#x})", p.address); });
  py::class_<StridedArgument>(m, "strided")
      .def(py::init([](const py::object& array) { return StridedArgument{array}; }),
           py::arg("array"))
      .def_property_readonly("array", [](const StridedArgument& s) { return s.array; });
}

}  // namespace

void bind_launch(py::module_& m) {
  make_bound_type(m);
  bind_kernel(m);
  bind_config(m);
  bind_checked(m);
  bind_wrappers(m);
}

}  // namespace kernwright::python
