// The launch path: subscript, vectorcall, arguments into a stack block, one launch.
#include "bindings/launch/launch.h"

#include "base/counted.h"
#include "base/errors.h"
#include "base/format.h"
#include "bindings/array/tensor_map_object.h"
#include "bindings/calls/recorded_calls.h"
#include "bindings/launch/graph_object.h"
#include "bindings/support/current.h"
#include "bindings/support/launch_site.h"
#include "bindings/support/python_support.h"
#include "bindings/values/array_support.h"
#include "core/device.h"
#include "core/graph/capture.h"
#include "core/runtime.h"

#include <structmember.h>
#include <array>
#include <cstddef>
#include <new>
#include <optional>
#include <utility>
#include <vector>

namespace kernwright::python {
namespace {

// Blocks up to these sizes live on the stack; larger ones are rare and take the heap.
constexpr std::size_t kStackBytes = 1024;
constexpr std::size_t kStackArguments = 64;

/// The argument block: bytes of all parameters and a pointer to each.
class ArgumentBlock {
 public:
  explicit ArgumentBlock(const LaunchPlan& plan) {
    if (plan.block_bytes > kStackBytes) {
      heap_bytes_.resize(plan.block_bytes / sizeof(std::max_align_t) + 1);
      bytes_ = reinterpret_cast<std::byte*>(heap_bytes_.data());
    }
    if (plan.arguments.size() > kStackArguments) {
      heap_pointers_.resize(plan.arguments.size());
      pointers_ = heap_pointers_.data();
    }
  }
  ArgumentBlock(const ArgumentBlock&) = delete;
  ArgumentBlock& operator=(const ArgumentBlock&) = delete;

  std::byte* slot(const ArgumentPlan& argument) {
    std::byte* slot = bytes_ + argument.offset;
    pointers_[argument.index] = slot;
    return slot;
  }
  void* const* pointers() const { return pointers_; }

 private:
  alignas(16) std::array<std::byte, kStackBytes> stack_bytes_;
  std::array<void*, kStackArguments> stack_pointers_;
  std::vector<std::max_align_t> heap_bytes_;
  std::vector<void*> heap_pointers_;
  std::byte* bytes_ = stack_bytes_.data();
  void** pointers_ = stack_pointers_.data();
};

void check_count(const LaunchPlan& plan, const LaunchFrame& frame, std::size_t count) {
  const std::size_t wanted = plan.arguments.size();
  if (count < wanted) {
    const ArgumentPlan& missing = plan.arguments[count];
    const std::string& name = missing.parameter->name;
    frame.refuse(missing, name.empty()
                              ? std::string("is missing")
                              : format("is missing: pass {} after the {} given", name, count));
  }
  throw ArgumentError(format("{}: takes {}, {} {} given; leave out the last {}",
                             plan.kernel.signature().to_string(), counted(wanted, "argument"),
                             count, count == 1 ? "was" : "were", count - wanted));
}

/// Chooses a block of highest occupancy and as many of them as the extents need.
void choose_grid(LaunchPlan& plan, LaunchConfig& config, const ThreadExtents& extents) {
  int block = config.shared_bytes == 0 ? plan.suggested_block.load(std::memory_order_relaxed) : 0;
  if (block == 0) {
    block = without_gil([&] { return plan.kernel.suggest_block(config.shared_bytes); });
    if (config.shared_bytes == 0) plan.suggested_block.store(block, std::memory_order_relaxed);
  }
  extents.choose(config, block);
}

/// kernel[grid, block, ...]: a configuration bound once, called many times.
struct BoundKernel {
  PyObject_HEAD vectorcallfunc call;
  PyObject* kernel;       // owned; the KernelObject lives in it
  LaunchConfig config;    // begins in make_bound(), ends in bound_free()
  ThreadExtents extents;  // of forall()
};

PyTypeObject* bound_type = nullptr;
/// The memory of the one that ended last: `kernel[grid, block](...)` makes one for each launch.
/// Guarded by the GIL; an interpreter without one does not have it.
BoundKernel* spare_bound = nullptr;

PyObject* bound_call(PyObject* self, PyObject* const* arguments, std::size_t flagged_count,
                     PyObject* keywords) {
  auto* bound = reinterpret_cast<BoundKernel*>(self);
  return guarded<PyObject*>(nullptr, [&] {
    if (keywords != nullptr && PyTuple_GET_SIZE(keywords) != 0) {
      throw ArgumentError(format("{}: arguments of a kernel are positional, got the keyword {}",
                                 cast_kernel(bound->kernel).name(),
                                 short_repr(PyTuple_GET_ITEM(keywords, 0))));
    }
    const auto count = static_cast<std::size_t>(PyVectorcall_NARGS(flagged_count));
    if (!bound->extents.is_empty()) {
      launch(cast_kernel(bound->kernel), bound->config, arguments, count, bound->extents);
    }
    Py_RETURN_NONE;
  });
}

void bound_free(PyObject* self) {
  auto* bound = reinterpret_cast<BoundKernel*>(self);
  if (bound->config.stream) drop_without_gil(bound->config);
  bound->config.~LaunchConfig();
  Py_XDECREF(bound->kernel);
  PyTypeObject* type = Py_TYPE(self);
#ifndef Py_GIL_DISABLED
  if (spare_bound == nullptr) {
    spare_bound = bound;
    Py_DECREF(type);
    return;
  }
#endif
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* bound_repr(PyObject* self) {
  auto* bound = reinterpret_cast<BoundKernel*>(self);
  const LaunchConfig& c = bound->config;
  const std::string& name = cast_kernel(bound->kernel).name();
  const std::string text = bound->extents.count != 0
                               ? format("<{}.forall({})>", name, bound->extents.to_string())
                               : format("<{}[({}, {}, {}), ({}, {}, {})]>", name, c.grid.x,
                                        c.grid.y, c.grid.z, c.block.x, c.block.y, c.block.z);
  return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
}

PyObject* make_bound(PyObject* kernel, LaunchConfig config, const ThreadExtents& extents) {
  cast_kernel(kernel);  // the calls rely on it
  BoundKernel* bound = std::exchange(spare_bound, nullptr);
  if (bound != nullptr) {
    PyObject_Init(reinterpret_cast<PyObject*>(bound), bound_type);
  } else {
    bound = reinterpret_cast<BoundKernel*>(bound_type->tp_alloc(bound_type, 0));
    if (bound == nullptr) throw py::error_already_set();
  }
  Py_INCREF(kernel);
  bound->call = &bound_call;
  bound->kernel = kernel;
  new (&bound->config) LaunchConfig(std::move(config));
  bound->extents = extents;
  return reinterpret_cast<PyObject*>(bound);
}

}  // namespace

KernelObject& cast_kernel(PyObject* kernel) {
  auto* const object = instance_value<KernelObject>(kernel);
  if (object == nullptr) throw ArgumentError("a kw.Kernel whose __init__() never ran");
  return *object;
}

LaunchConfig resolved(const LaunchConfigObject& object) {
  LaunchConfig config = object.config;
  if (!config.stream && !object.stream.is_none()) {
    config.stream = stream_argument(object.stream, current_device());
  }
  return config;
}

void launch(KernelObject& kernel, const LaunchConfig& given, PyObject* const* arguments,
            std::size_t count, const ThreadExtents& extents) {
  if (is_recording() && !allow_launch(kernel.name(), arguments, count)) [[unlikely]] {
    throw py::error_already_set();
  }
  Device& device = given.stream ? given.stream.device() : current_device();
  std::optional<LaunchConfig> changed;  // a copy costs as much as the conversion of an argument
  if (!given.stream) {
    if (Stream stream = current_stream(device)) changed.emplace(given).stream = std::move(stream);
  }
  LaunchPlan& plan = kernel.plan(device);
  const Stream& stream = changed ? changed->stream : given.stream;
  LaunchFrame frame(plan.kernel, device, stream);
  if (count != plan.arguments.size()) check_count(plan, frame, count);
  if (extents.count != 0) {
    if (!changed) changed.emplace(given);
    choose_grid(plan, *changed, extents);
  }
  const LaunchConfig& config = changed ? *changed : given;
  ArgumentBlock block(plan);
  for (std::size_t i = 0; i < count; ++i) {
    const ArgumentPlan& argument = plan.arguments[i];
    argument.convert(argument, arguments[i], block.slot(argument), frame);
  }
  const LaunchSite site = caller_site();
  {
    const GilRelease unlocked;
    plan.kernel.launch(config, {block.pointers(), count}, site);
    // The arrays may be dropped at once: their memory waits for this launch on a stream not their
    // own.
    frame.use_arrays(config.stream);
  }
  if (any_capture()) [[unlikely]]
    hold_in_capture(config.stream, arguments, count);
  frame.finish();
}

PyObject* bind_subscript(PyObject* kernel, PyObject* key) noexcept {
  return guarded<PyObject*>(nullptr, [&] {
    const Py_ssize_t parts = PyTuple_Check(key) ? PyTuple_GET_SIZE(key) : 1;
    if (!PyTuple_Check(key) || parts < 2 || parts > 4) {
      throw ArgumentError(
          format("{0}: launch it as {0}[grid, block], {0}[grid, block, stream] or "
                 "{0}[grid, block, stream, shared_bytes], got {1} in the brackets",
                 cast_kernel(kernel).name(), short_repr(key)));
    }
    LaunchConfig config;
    config.grid = dim3_argument(PyTuple_GET_ITEM(key, 0), "a grid");
    config.block = dim3_argument(PyTuple_GET_ITEM(key, 1), "a block");
    if (parts > 2 && PyTuple_GET_ITEM(key, 2) != Py_None) {
      const py::handle stream = PyTuple_GET_ITEM(key, 2);
      config.stream = stream_argument(stream, current_device());
    }
    if (parts > 3) config.shared_bytes = shared_bytes_argument(PyTuple_GET_ITEM(key, 3));
    return make_bound(kernel, std::move(config), {});
  });
}

py::object bind_forall(const py::object& kernel, const ThreadExtents& extents,
                       const py::object& stream, std::uint32_t shared_bytes) {
  LaunchConfig config;
  config.stream = stream_argument(stream, current_device());
  config.shared_bytes = shared_bytes;
  return py::reinterpret_steal<py::object>(make_bound(kernel.ptr(), std::move(config), extents));
}

void make_bound_type(py::module_& m) {
  static PyMemberDef members[] = {
      {"__vectorcalloffset__", T_PYSSIZET, offsetof(BoundKernel, call), READONLY, nullptr},
      {nullptr, 0, 0, 0, nullptr},
  };
  static PyType_Slot slots[] = {
      {Py_tp_dealloc, reinterpret_cast<void*>(&bound_free)},
      {Py_tp_repr, reinterpret_cast<void*>(&bound_repr)},
      {Py_tp_call, reinterpret_cast<void*>(&PyVectorcall_Call)},
      {Py_tp_members, members},
      {Py_tp_doc, const_cast<char*>("A kernel with its launch configuration: call it to launch.")},
      {0, nullptr},
  };
  static PyType_Spec spec = {
      "kernwright._core.BoundKernel", sizeof(BoundKernel), 0,
      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  PyObject* type = PyType_FromSpec(&spec);
  if (type == nullptr) throw py::error_already_set();
  bound_type = reinterpret_cast<PyTypeObject*>(type);
  m.attr("BoundKernel") = py::reinterpret_borrow<py::object>(type);
}

}  // namespace kernwright::python
