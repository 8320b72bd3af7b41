// Devices, streams and events for Python.
#include "base/errors.h"
#include "base/format.h"
#include "bindings/launch/bind_partition.h"
#include "bindings/support/bindings.h"
#include "bindings/support/current.h"
#include "bindings/support/gil.h"
#include "bindings/support/python_support.h"
#include "core/device.h"
#include "core/event.h"
#include "core/graph/capture.h"
#include "core/peers.h"
#include "core/runtime.h"
#include "core/stream.h"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace kernwright::python {
namespace {

constexpr std::string_view kAttributePrefix = "CU_DEVICE_ATTRIBUTE_";

/// {"multiprocessor_count": 16, ...}: CUDA's own names in lower case, aliases included.
py::dict attribute_numbers() {
  py::dict numbers;
  for (const DriverEnumerator& row : driver_enumerators()) {
    if (std::string_view(row.type) != "CUdevice_attribute") continue;
    std::string name(std::string_view(row.name).substr(kAttributePrefix.size()));
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (name != "max") numbers[py::str(name)] = row.value;
  }
  return numbers;
}

py::tuple memory_info(const DeviceObject& self) {
  MemoryInfo info;
  {
    const GilRelease unlocked;
    info = self.newest().memory_info();
  }
  return module_member("kernwright._support.device", "MemoryInfo")(info.free, info.total);
}

std::string device_key(const Device& device) {
  return format("{}:{}", device.is_simulated() ? "sim" : "cuda", device.ordinal());
}

void bind_device(py::module_& m) {
  py::class_<DeviceObject>(m, "Device")
      .def(py::init([](const py::object& which) { return DeviceObject{&device_argument(which)}; }),
           py::arg("which") = py::none(), py::pos_only())
      .def_property_readonly("name",
                             [](const DeviceObject& s) { return text_object(s.device->name()); })
      .def_property_readonly("ordinal", [](const DeviceObject& s) { return s.device->ordinal(); })
      .def_property_readonly("is_simulated",
                             [](const DeviceObject& s) { return s.device->is_simulated(); })
      .def_property_readonly(
          "uuid",
          [](const DeviceObject& s) { return without_gil([&] { return s.device->uuid(); }); })
      .def_property_readonly(
          "pci_bus_id",
          [](const DeviceObject& s) { return without_gil([&] { return s.device->pci_bus_id(); }); })
      .def_property_readonly("driver_version",
                             [](const DeviceObject& s) {
                               return without_gil([&] { return s.device->driver_version(); });
                             })
      .def_property_readonly("compute_capability",
                             [](const DeviceObject& s) {
                               const ComputeCapability cc = s.device->compute_capability();
                               return py::make_tuple(cc.major, cc.minor);
                             })
      .def_property_readonly("attributes",
                             [](const py::object& self) {
                               return module_member("kernwright._support.device",
                                                    "DeviceAttributes")(self);
                             })
      .def("_attribute",
           [](const DeviceObject& s, int number) {
             const auto which = static_cast<CUdevice_attribute>(number);
             return without_gil([&] { return s.device->attribute(which); });
           })
      .def("memory_info", &memory_info)
      .def(
          "partitions",
          [](const DeviceObject& s, const py::object& sizes, const py::object& memory,
             const py::object& share, const py::object& streams) {
            return make_partitions(s.newest(), sizes, memory, share, streams);
          },
          py::arg("sizes"), py::kw_only(), py::arg("memory") = py::none(),
          py::arg("share") = py::none(), py::arg("streams") = py::none())
      .def_property_readonly(
          "partition_rules",
          [](const DeviceObject& s) { return device_partition_rules(s.newest()); })
      .def_property_readonly("priority_range",
                             [](const DeviceObject& s) {
                               const PriorityRange range =
                                   without_gil([&] { return priority_range(s.newest()); });
                               return py::make_tuple(range.least, range.greatest);
                             })
      .def(
          "can_access",
          [](const DeviceObject& s, const py::object& peer) {
            Device& other = device_argument(peer);
            return without_gil([&] { return peer_link(*s.device, other).access; });
          },
          py::arg("peer"))
      .def(
          "enable_peer_access",
          [](const DeviceObject& s, const py::object& peer) {
            Device& other = device_argument(peer);
            return without_gil([&] { return enable_peer_access(*s.device, other); });
          },
          py::arg("peer"))
      .def(
          "synchronize",
          [](const DeviceObject& s, const py::object& timeout) {
            const auto limit = timeout_argument(timeout);
            const GilRelease unlocked;
            s.newest().synchronize(limit);
          },
          py::arg("timeout") = py::none())
      .def("reset",
           [](const DeviceObject& s) {
             const GilRelease unlocked;
             s.newest().reset();
           })
      .def_property_readonly("lost", [](const DeviceObject& s) { return s.newest().lost(); })
      .def("__enter__",
           [](const py::object& self) {
             enter_device(self.cast<DeviceObject&>().newest());
             return self;
           })
      .def("__exit__", [](const DeviceObject& s, const py::args&) { leave_device(s.newest()); })
      .def("__eq__",
           [](const DeviceObject& s, const py::object& other) {
             return py::isinstance<DeviceObject>(other) &&
                    &other.cast<DeviceObject&>().newest() == &s.newest();
           })
      .def("__hash__",
           [](const DeviceObject& s) {
             return 2 * s.device->ordinal() + (s.device->is_simulated() ? 1 : 0);
           })
      .def("__str__", [](const DeviceObject& s) { return device_key(*s.device); })
      .def("__repr__",
           [](const DeviceObject& s) {
             return text_object("<Device " + s.device->identify() + ">");
           })
      .def("__reduce__", [](const py::object& self) {
        return py::make_tuple(py::type::of(self),
                              py::make_tuple(device_key(*self.cast<DeviceObject&>().device)));
      });

  m.def("devices", [] {
    py::list list;
    const auto& devices =
        without_gil([]() -> const std::vector<Device*>* { return &Runtime::get().devices(); });
    for (Device* device : *devices) list.append(DeviceObject{device});
    return list;
  });
  m.def(
      "synchronize",
      [](const py::object& timeout) {
        Device& device = current_device();
        const auto limit = timeout_argument(timeout);
        const GilRelease unlocked;
        device.synchronize(limit);
      },
      py::arg("timeout") = py::none(),
      "Waits until all work of the current device is done, in every stream; at most `timeout` "
      "seconds. Raises what the work met: DeviceFault, DeviceLost; Timeout when time is up, and "
      "CaptureError while a stream of the device is captured into a graph. Any thread may call "
      "it.");
  m.def("current_device", [] { return DeviceObject{&current_device()}; });
  m.def("cuda_unavailable_reason", [] { return Runtime::get().cuda_unavailable_reason(); });
  m.def("_attribute_numbers", &attribute_numbers);
}

Stream device_stream(const py::object& device) {
  Device& chosen = device_argument(device);
  Stream current = current_stream(chosen);
  return current ? current : Stream::legacy(chosen);
}

Event& event_argument(const py::object& value) {
  if (py::isinstance<Event>(value)) return value.cast<Event&>();
  throw ArgumentError("an event must be a kw.Event, got " + type_name(value));
}

void bind_stream(py::module_& m) {
  py::class_<Stream, Unlocked<Stream>>(m, "Stream")
      .def(py::init([](const py::object& priority, const py::object& device) {
             Device& chosen = device_argument(device);
             const int number = priority_argument(priority, chosen);
             return without_gil([&] { return Stream::create(chosen, number); });
           }),
           py::arg("priority") = 0, py::kw_only(), py::arg("device") = py::none())
      .def_static(
          "legacy",
          [](const py::object& device) { return Stream::legacy(device_argument(device)); },
          py::arg("device") = py::none())
      .def_static(
          "per_thread",
          [](const py::object& device) { return Stream::per_thread(device_argument(device)); },
          py::arg("device") = py::none())
      .def_static(
          "borrow",
          [](const py::object& stream, const py::object& device) {
            Device& chosen = device_argument(device);
            Stream borrowed = stream_argument(stream, chosen);
            return borrowed ? borrowed : Stream::legacy(chosen);
          },
          py::arg("stream"), py::arg("device") = py::none())
      .def_property_readonly(
          "handle", [](const Stream& s) { return reinterpret_cast<std::uintptr_t>(s.handle()); })
      .def_property_readonly("device", [](const Stream& s) { return DeviceObject{&s.device()}; })
      .def_property_readonly(
          "priority", [](const Stream& s) { return without_gil([&] { return s.priority(); }); })
      .def_property_readonly("partition",
                             [](const Stream& s) -> py::object {
                               Partition partition = s.partition();
                               if (!partition) return py::none();
                               return py::cast(std::move(partition));
                             })
      .def_property_readonly(
          "multiprocessors",
          [](const Stream& s) { return without_gil([&] { return s.multiprocessors(); }); })
      .def_property_readonly("done",
                             [](const Stream& s) { return without_gil([&] { return s.done(); }); })
      .def_property_readonly("is_capturing",
                             [](const Stream& s) {
                               const GilRelease unlocked;
                               const ContextGuard guard(s.device());
                               return capture_id(s.device(), s.handle()) != 0;
                             })
      .def(
          "record",
          [](const Stream& s, const py::object& event, bool external) -> py::object {
            py::object marker = event;
            if (event.is_none()) marker = py::cast(without_gil([&] { return Event(s.device()); }));
            Event& chosen = event_argument(marker);
            without_gil([&] { chosen.record(s, external); });
            return marker;
          },
          py::arg("event") = py::none(), py::kw_only(), py::arg("external") = false)
      .def(
          "wait",
          [](const Stream& s, const py::object& what) {
            if (py::isinstance<Event>(what)) {
              const auto& event = what.cast<const Event&>();
              const GilRelease unlocked;
              return s.wait(event);
            }
            Stream other = stream_argument(what, s.device());
            if (!other) throw ArgumentError("wait(event) wants an Event or a stream, got None");
            const GilRelease unlocked;
            const Stream ahead = std::move(other);  // may go with this call
            Event behind(ahead.device(), false);
            behind.record(ahead);
            s.wait(behind);
          },
          py::arg("event"))
      .def(
          "synchronize",
          [](const Stream& s, const py::object& timeout) {
            const auto limit = timeout_argument(timeout);
            const GilRelease unlocked;
            s.synchronize(limit);
          },
          py::arg("timeout") = py::none())
      .def("__cuda_stream__",
           [](const Stream& s) {
             return py::make_tuple(0, reinterpret_cast<std::uintptr_t>(s.handle()));
           })
      .def("__enter__",
           [](const py::object& self) {
             enter_stream(self.cast<const Stream&>());
             return self;
           })
      .def("__exit__", [](const Stream& s, const py::args&) { leave_stream(s); })
      .def("__eq__",
           [](const Stream& s, const py::object& other) {
             return py::isinstance<Stream>(other) &&
                    other.cast<const Stream&>().handle() == s.handle() &&
                    &other.cast<const Stream&>().device() == &s.device();
           })
      .def("__hash__",
           [](const Stream& s) { return reinterpret_cast<std::intptr_t>(s.handle()) >> 4; })
      .def("__repr__", [](const Stream& s) {
        return format("<Stream {:#x} on {}>", reinterpret_cast<std::uintptr_t>(s.handle()),
                      device_key(s.device()));
      });
  m.def("current_stream", &device_stream, py::arg("device") = py::none());
}

void bind_event(py::module_& m) {
  py::class_<Event, Unlocked<Event>>(m, "Event")
      .def(py::init([](bool timing, const py::object& device) {
             Device& chosen = device_argument(device);
             return without_gil([&] { return Event(chosen, timing); });
           }),
           py::arg("timing") = true, py::kw_only(), py::arg("device") = py::none())
      .def_property_readonly(
          "handle", [](const Event& s) { return reinterpret_cast<std::uintptr_t>(s.handle()); })
      .def_property_readonly("device", [](const Event& s) { return DeviceObject{&s.device()}; })
      .def_property_readonly("timing", &Event::timing)
      .def_property_readonly("done",
                             [](const Event& s) { return without_gil([&] { return s.done(); }); })
      .def(
          "record",
          [](Event& s, const py::object& stream, bool external) {
            Stream given = stream_argument(stream, s.device());
            if (!given) given = current_stream(s.device());
            const GilRelease unlocked;
            const Stream chosen = given ? std::move(given) : Stream::legacy(s.device());
            s.record(chosen, external);
          },
          py::arg("stream") = py::none(), py::kw_only(), py::arg("external") = false)
      .def("synchronize", &Event::synchronize, py::call_guard<GilRelease>())
      .def(
          "elapsed_ms",
          [](const Event& end, const Event& start) -> py::object {
            const double milliseconds =
                without_gil([&] { return static_cast<double>(end.elapsed_ms(start)); });
            const py::float_ value(milliseconds);
            if (!end.device().is_simulated()) return value;
            return module_member("kernwright._measure.simulated", "SimulatedMilliseconds")(value);
          },
          py::arg("start"))
      .def("__repr__",
           [](const Event& s) { return format("<Event on {}>", device_key(s.device())); });
}

}  // namespace

void bind_core(py::module_& m) {
  bind_device(m);
  bind_event(m);
  bind_stream(m);
  bind_partition(m);
}

}  // namespace kernwright::python
