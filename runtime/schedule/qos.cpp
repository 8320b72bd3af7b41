// Names of the classes of service.
#include "schedule/qos.h"

#include "base/errors.h"
#include "base/format.h"

namespace kernwright::schedule {

const char* qos_name(Qos qos) noexcept {
  switch (qos) {
    case Qos::guaranteed:
      return "guaranteed";
    case Qos::burstable:
      return "burstable";
    default:
      return "best_effort";
  }
}

Qos qos_named(std::string_view name) {
  for (const Qos qos : kAllClasses) {
    if (name == qos_name(qos)) return qos;
  }
  throw InvalidArgument(
      format("qos=\"{}\": a class is \"guaranteed\", \"burstable\" or \"best_effort\"", name));
}

}  // namespace kernwright::schedule
