// The rule of the classes.
#include "memory/eviction_group.h"

namespace kernwright {

bool EvictionGroup::is_evictable() const noexcept {
  switch (eviction_class()) {
    case EvictionClass::best_effort:
      return true;
    case EvictionClass::burstable:
      return resident() > request();
    case EvictionClass::guaranteed:
      break;
  }
  return false;
}

}  // namespace kernwright
