// Recordings of activities for Python: begin, end, and each activity as a plain tuple.
#include "bindings/support/bindings.h"
#include "bindings/support/current.h"
#include "bindings/support/gil.h"
#include "bindings/support/python_support.h"
#include "core/activity.h"
#include "core/annotation.h"
#include "core/device.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace kernwright::python {
namespace {

const char* kind_name(Activity::Kind kind) {
  constexpr const char* kNames[] = {"kernel",     "graph",   "copy",      "fill",
                                    "allocation", "release", "annotation"};
  return kNames[static_cast<std::size_t>(kind)];
}

py::tuple extents(const Dim3& value) { return py::make_tuple(value.x, value.y, value.z); }

py::object device_or_none(Device* device) {
  return device != nullptr ? py::cast(DeviceObject{device}) : py::none();
}

/// In the order of the fields of kernwright._measure.profile.Activity.
py::tuple activity_tuple(const Activity& a) {
  std::string place;
  {
    const GilRelease unlocked;  // a Python line is looked up with the GIL taken anew
    place = a.site.to_string();
  }
  return py::make_tuple(kind_name(a.kind), text_object(a.name), device_or_none(a.device), a.stream,
                        extents(a.grid), extents(a.block), a.bytes, a.address, a.thread,
                        text_object(place), a.host_begin_ms, a.host_ms, a.begin_ms, a.device_ms);
}

/// The object of `with kw.annotate(name):`; ended by hand, since Python drops objects when it
/// likes.
struct AnnotationObject {
  std::unique_ptr<Annotation> annotation;
};

struct RecordingObject {
  std::shared_ptr<ActivityRecording> recording;
};

py::list end_recording(const RecordingObject& self) {
  std::vector<Activity> activities;
  {
    const GilRelease unlocked;
    activities = self.recording->end();
  }
  py::list list;
  for (const Activity& activity : activities) list.append(activity_tuple(activity));
  return list;
}

}  // namespace

void bind_profile(py::module_& m) {
  py::class_<RecordingObject, Unlocked<RecordingObject>>(m, "_Recording")
      .def(py::init([] {
        return without_gil([] {
          return Unlocked<RecordingObject>(new RecordingObject{ActivityRecording::begin()});
        });
      }))
      .def("end", &end_recording);
  py::class_<AnnotationObject>(m, "_Annotation")
      .def(py::init([](const std::string& name) {
             return AnnotationObject{std::make_unique<Annotation>(name)};
           }),
           py::arg("name"))
      .def("end", [](AnnotationObject& a) { a.annotation.reset(); });
}

}  // namespace kernwright::python
