// Evictable arrays for Python: content with leave to move to the host between uses.
#include "array/array.h"
#include "array/shape.h"
#include "base/errors.h"
#include "base/format.h"
#include "base/printable.h"
#include "bindings/memory/memory_bindings.h"
#include "bindings/support/bindings.h"
#include "bindings/support/current.h"
#include "bindings/support/gil.h"
#include "bindings/support/launch_site.h"
#include "bindings/values/array_support.h"
#include "bindings/values/dtype.h"
#include "core/device.h"
#include "kernels_src/copy/copy.h"
#include "memory/allocation_site.h"
#include "memory/evictable_buffer.h"

#include <memory>
#include <string>

namespace kernwright::python {
namespace {

/// A shape and an element type over an evictable buffer.
struct Evictable {
  std::unique_ptr<EvictableBuffer> buffer;
  Shape shape;
  ScalarType type;

  /// The content as an array; it holds the pin as long as it or any view of it lives.
  Array pin() {
    auto held = std::make_shared<EvictableBuffer::Pin>(buffer->pin());
    Buffer& memory = *held->buffer();
    return Array::over(std::move(held), memory, shape, type);
  }
};

bool is_resident(const Evictable& evictable) {
  const GilRelease unlocked;
  return evictable.buffer->is_resident();
}

using Group = std::shared_ptr<EvictionGroup>;

EvictionClass class_named(const std::string& name) {
  if (name == "best_effort") return EvictionClass::best_effort;
  if (name == "burstable") return EvictionClass::burstable;
  if (name == "guaranteed") return EvictionClass::guaranteed;
  throw InvalidArgument(format(
      "an eviction group of class \"{}\": best_effort, burstable or guaranteed", printable(name)));
}

const char* class_name(const EvictionGroup& group) {
  switch (group.eviction_class()) {
    case EvictionClass::best_effort:
      return "best_effort";
    case EvictionClass::burstable:
      return "burstable";
    case EvictionClass::guaranteed:
      break;
  }
  return "guaranteed";
}

void bind_eviction_group(py::module_& m) {
  py::class_<EvictionGroup, Group>(m, "EvictionGroup")
      .def(py::init([](const std::string& name, std::size_t request, bool whole) {
             return std::make_shared<EvictionGroup>(class_named(name), request, whole);
           }),
           py::arg("qos"), py::arg("request") = 0, py::arg("whole") = false)
      .def_property(
          "qos", &class_name,
          [](EvictionGroup& s, const std::string& name) { s.set_class(class_named(name)); })
      .def_property("request", &EvictionGroup::request, &EvictionGroup::set_request)
      .def_property_readonly("resident", &EvictionGroup::resident)
      .def("__repr__", [](const EvictionGroup& s) {
        return format("<EvictionGroup {}: {} bytes on the device, {} requested>", class_name(s),
                      s.resident(), s.request());
      });
}

Unlocked<Evictable> make_evictable(const Array& array, const Group& group) {
  Device& device = array.device();
  const Stream stream = current_stream(device);
  const AllocationSiteScope scope(user_site());
  Unlocked<Evictable> made(new Evictable);
  made->shape = array.shape();
  made->type = array.type();
  const GilRelease unlocked;
  made->buffer = std::make_unique<EvictableBuffer>(default_resource(device), array.nbytes(), stream,
                                                   LaunchSite::here(), group);
  Array target = made->pin();
  kernels::copy_elements(target, array, stream);
  return made;
}

}  // namespace

void bind_evictable(py::module_& m) {
  bind_eviction_group(m);
  py::class_<Evictable, Unlocked<Evictable>>(m, "Evictable")
      .def(py::init(&make_evictable), py::arg("array"), py::kw_only(),
           py::arg("group") = py::none())
      .def_property_readonly("shape", [](const Evictable& e) { return shape_tuple(e.shape); })
      .def_property_readonly("dtype", [](const Evictable& e) { return dtype_object(e.type); })
      .def_property_readonly("nbytes", [](const Evictable& e) { return e.buffer->bytes(); })
      .def_property_readonly("device",
                             [](const Evictable& e) { return DeviceObject{&e.buffer->device()}; })
      .def_property_readonly("group", [](const Evictable& e) { return e.buffer->group(); })
      .def_property_readonly("resident", &is_resident)
      .def_property_readonly("pinned",
                             [](const Evictable& e) {
                               const GilRelease unlocked;
                               return e.buffer->is_pinned();
                             })
      .def("pin",
           [](Evictable& e) {
             const AllocationSiteScope scope(user_site());
             const GilRelease unlocked;
             return e.pin();
           })
      .def("evict",
           [](Evictable& e) {
             const GilRelease unlocked;
             return e.buffer->evict();
           })
      .def("__repr__", [](const Evictable& e) {
        return format("<Evictable {} array of shape {} {} {}>", scalar_name(e.type),
                      shape_to_string(e.shape), is_resident(e) ? "on" : "on the host, for",
                      e.buffer->device().label());
      });
}

}  // namespace kernwright::python
