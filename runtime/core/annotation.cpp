// Ranges of NVTX and of a recording.
#include "core/annotation.h"

#include "core/activity.h"

#include <new>
#include <utility>

namespace kernwright {

struct Annotation::Recorded {
  ActivityScope scope;
};

Annotation::Annotation(const std::string& name) : range_(name.c_str()) {
  if (is_recording_activity()) {
    Activity activity;
    activity.kind = Activity::Kind::annotation;
    activity.name = name;
    recorded_.reset(new Recorded{ActivityScope(std::move(activity), nullptr, false)});
  }
}

Annotation::~Annotation() {
  if (recorded_ == nullptr) return;
  try {
    recorded_->scope.finish();
  } catch (const std::bad_alloc&) {
    return;  // a profile with a gap is better than a program that ends
  }
}

}  // namespace kernwright
