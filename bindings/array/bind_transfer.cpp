// The transfer engine for Python: NumPy arrays in, arrays of a device out, and the other way round.
#include "array/shape.h"
#include "base/errors.h"
#include "base/format.h"
#include "base/printable.h"
#include "bindings/support/bindings.h"
#include "bindings/support/current.h"
#include "bindings/support/gil.h"
#include "bindings/support/launch_site.h"
#include "bindings/support/python_support.h"
#include "bindings/values/array_support.h"
#include "bindings/values/dtype.h"
#include "core/device.h"
#include "core/graph/capture.h"
#include "memory/allocation_site.h"
#include "memory/transfer.h"
#include "memory/transfer_engine.h"

#include <pybind11/numpy.h>
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace kernwright::python {
namespace {

/// A transfer with its result: an Array or a NumPy array.
struct TransferObject {
  TransferObject(Transfer started, Device& where, py::object made)
      : transfer(std::move(started)), device(&where), result(std::move(made)) {}
  TransferObject(TransferObject&&) = default;
  ~TransferObject() { drop_without_gil(transfer); }
  Transfer transfer;
  Device* device;
  py::object result;
};

/// The engine's destructor waits for copies on their way; the GIL must not wait.
struct EngineObject {
  EngineObject(Device& device, const TransferEngine::Options& options)
      : engine(without_gil([&] { return std::make_unique<TransferEngine>(device, options); })) {}
  EngineObject(const EngineObject&) = delete;
  EngineObject& operator=(const EngineObject&) = delete;
  ~EngineObject() {
    const GilRelease unlocked;
    engine.reset();
  }
  std::unique_ptr<TransferEngine> engine;
};

using Kept = std::pair<std::shared_ptr<void>, std::shared_ptr<void>>;

std::size_t positive_argument(const py::object& value, const char* name) {
  if (PyBool_Check(value.ptr()) || !PyIndex_Check(value.ptr())) {
    throw ArgumentError(format("{} must be an int, got {}", name, type_name(value)));
  }
  const Py_ssize_t number = PyNumber_AsSsize_t(value.ptr(), PyExc_OverflowError);
  if (number == -1 && PyErr_Occurred() != nullptr) throw py::error_already_set();
  if (number <= 0) throw InvalidArgument(format("{} of {}: it must be at least 1", name, number));
  return static_cast<std::size_t>(number);
}

/// The stream with the earlier work: the one given, else the current one.
Stream predecessor(const py::object& after, Device& device) {
  const Stream chosen = after.is_none() ? current_stream(device) : stream_argument(after, device);
  return chosen ? chosen : Stream::legacy(device);
}

void require_transferable(const Array& array, const Device& device, const char* what,
                          const char* advice) {
  if (&array.device() != &device) {
    throw ArgumentError(
        format("{} of {}: the engine serves {}", what, array.identify(), device.identify()));
  }
  if (!array.is_contiguous()) {
    throw ArgumentError(
        format("{} of {} that is not contiguous: {}", what, array.identify(), advice));
  }
}

void require_same_layout(const py::array& values, const Array& array) {
  const auto type = dtype_scalar(values.dtype());
  const Shape shape(values.shape(), values.shape() + values.ndim());
  if (type == array.type() && shape == array.shape()) return;
  throw ArgumentError(format("a NumPy array of {} and shape {} for {}: both must agree",
                             py::str(values.dtype()).cast<std::string>(), shape_to_string(shape),
                             array.identify()));
}

py::array numpy_argument(const py::object& value, bool writable) {
  if (!py::isinstance<py::array>(value)) {
    throw ArgumentError("a transfer wants a NumPy array on the host, got " + type_name(value));
  }
  auto array = py::reinterpret_borrow<py::array>(value);
  if ((array.flags() & py::array::c_style) == 0) {
    throw ArgumentError("the NumPy array of a transfer must be contiguous (C order)");
  }
  if (writable && !array.writeable()) throw ArgumentError("the NumPy array is read-only");
  return array;
}

TransferClass class_argument(const py::object& given) {
  if (given.is_none()) return thread_transfer_class();
  if (!PyUnicode_Check(given.ptr())) {
    throw ArgumentError("qos= is the name of a class, got " + type_name(given));
  }
  const auto name = given.cast<std::string>();
  if (name == "urgent") return TransferClass::urgent;
  if (name == "normal") return TransferClass::normal;
  if (name == "best_effort") return TransferClass::best_effort;
  throw InvalidArgument(
      format("a transfer of class \"{}\": urgent, normal or best_effort", printable(name)));
}

TransferObject upload(const EngineObject& self, const py::object& values, const py::object& out,
                      const py::object& after, const py::object& qos) {
  const TransferClass kind = class_argument(qos);
  TransferEngine& engine = *self.engine;
  Device& device = engine.device();
  const py::array host = numpy_argument(values, false);
  const auto type = dtype_scalar(host.dtype());
  if (!type) {
    throw ArgumentError(format("an array of dtype {} cannot be copied to a device",
                               py::str(host.dtype()).cast<std::string>()));
  }
  Array target;
  Stream first;
  if (out.is_none()) {
    // Made in the order of the upload: only a named stream has to be waited for.
    Shape shape(host.shape(), host.shape() + host.ndim());
    const AllocationSiteScope scope(user_site());
    const GilRelease unlocked;
    target = Array::empty(device, std::move(shape), *type, engine.upload_stream(kind));
  }
  if (out.is_none()) {
    if (!after.is_none()) first = predecessor(after, device);
  } else {
    target = out.cast<const Array&>();
    require_transferable(target, device, "an upload",
                         "upload to a contiguous array t and copy it: x[...] = t");
    require_same_layout(host, target);
    if (target.read_only()) {
      throw InvalidArgument("cannot write to " + target.identify() + ": read-only");
    }
    first = predecessor(after, device);
  }
  auto kept = std::make_shared<Kept>(keep_alive(host), target.owner());
  const void* const data = host.data();
  Transfer transfer;
  {
    const GilRelease unlocked;
    transfer = engine.upload(target.address(), data, target.nbytes(), first, std::move(kept), kind);
  }
  return {std::move(transfer), device, out.is_none() ? py::cast(std::move(target)) : out};
}

/// Queues a copy of page-locked memory to an array of so many bytes on the current stream, which
/// may be captured: the graph then keeps `values`. Otherwise the caller does, until the copy is
/// done.
void copy_pinned(const Array& array, const py::object& values) {
  const py::array host = numpy_argument(values, false);
  Device& device = array.device();
  require_transferable(array, device, "a copy", "pass a part without gaps");
  if (static_cast<std::size_t>(host.nbytes()) != array.nbytes())
    throw ArgumentError(
        format("{} bytes for {}, which has {}", host.nbytes(), array.identify(), array.nbytes()));
  if (array.nbytes() == 0) return;
  const void* const data = host.data();
  const Stream stream = predecessor(py::none(), device);
  std::shared_ptr<void> kept = any_capture() ? keep_alive(host) : nullptr;
  const GilRelease unlocked;
  if (!is_page_locked(device, data))
    throw ArgumentError(format("the memory for {} is not page-locked", array.identify()));
  copy_to_device(device, array.address(), data, array.nbytes(), stream);
  if (any_capture()) {
    if (const auto capture = find_capture(stream)) capture->keep_alive(std::move(kept));
  }
  array.use_on(stream);
}

TransferObject download(const EngineObject& self, const Array& array, const py::object& out,
                        const py::object& after, const py::object& qos) {
  const TransferClass kind = class_argument(qos);
  TransferEngine& engine = *self.engine;
  require_transferable(array, engine.device(), "a download", "pass x.copy()");
  py::array host;
  if (out.is_none()) {
    const std::vector<py::ssize_t> shape(array.shape().begin(), array.shape().end());
    host = py::array(dtype_object(array.type()), shape);
  } else {
    host = numpy_argument(out, true);
    require_same_layout(host, array);
  }
  const Stream first = predecessor(after, engine.device());
  auto kept = std::make_shared<Kept>(keep_alive(host), array.owner());
  void* const data = host.mutable_data();
  Transfer transfer;
  {
    const GilRelease unlocked;
    transfer = engine.download(data, array.address(), array.nbytes(), first, std::move(kept), kind);
  }
  return {std::move(transfer), engine.device(), std::move(host)};
}

void wait(const TransferObject& self, const py::object& timeout) {
  const auto limit = timeout_argument(timeout);
  const GilRelease unlocked;
  self.transfer.wait(limit);
}

void wait_on(const TransferObject& self, const py::object& stream) {
  const Stream waiting = predecessor(stream, *self.device);
  const GilRelease unlocked;
  self.transfer.wait_on(waiting);
}

bool is_done(const TransferObject& self) {
  return without_gil([&] { return self.transfer.done(); });
}

void bind_transfer_object(py::module_& m) {
  py::class_<TransferObject>(m, "Transfer")
      .def_property_readonly("done", &is_done)
      .def("wait", &wait, py::arg("timeout") = py::none())
      .def("wait_on", &wait_on, py::arg("stream") = py::none())
      .def(
          "result",
          [](const TransferObject& t, const py::object& timeout) {
            wait(t, timeout);
            return t.result;
          },
          py::arg("timeout") = py::none())
      .def("__repr__", [](const TransferObject& t) {
        return format("<Transfer, {}>", is_done(t) ? "done" : "on its way");
      });
}

}  // namespace

void bind_transfer(py::module_& m) {
  m.def("_copy_pinned", &copy_pinned);
  bind_transfer_object(m);
  py::class_<EngineObject>(m, "TransferEngine")
      .def(py::init([](const py::object& device, const py::object& chunk_bytes,
                       const py::object& chunks, int priority) {
             TransferEngine::Options options;
             options.chunk_bytes = positive_argument(chunk_bytes, "chunk_bytes");
             options.chunks = static_cast<int>(
                 std::min<std::size_t>(positive_argument(chunks, "chunks"), 1 << 16));
             options.priority = priority;
             return std::make_unique<EngineObject>(device_argument(device), options);
           }),
           py::kw_only(), py::arg("device") = py::none(), py::arg("chunk_bytes") = 4 << 20,
           py::arg("chunks") = 4, py::arg("priority") = 0)
      .def_property_readonly(
          "device", [](const EngineObject& e) { return DeviceObject{&e.engine->device()}; })
      .def_property_readonly("upload_stream",
                             [](const EngineObject& e) { return e.engine->upload_stream(); })
      .def_property_readonly("download_stream",
                             [](const EngineObject& e) { return e.engine->download_stream(); })
      .def("upload", &upload, py::arg("values"), py::arg("out") = py::none(), py::kw_only(),
           py::arg("after") = py::none(), py::arg("qos") = py::none())
      .def("download", &download, py::arg("array"), py::arg("out") = py::none(), py::kw_only(),
           py::arg("after") = py::none(), py::arg("qos") = py::none());
}

}  // namespace kernwright::python
