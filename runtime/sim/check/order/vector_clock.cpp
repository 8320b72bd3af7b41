// Vector clocks as short sorted lists.
#include "sim/check/order/vector_clock.h"

#include <algorithm>

namespace kernwright::sim {
namespace {

bool before(const std::pair<Actor, std::uint64_t>& entry, Actor actor) {
  return entry.first < actor;
}

}  // namespace

std::uint64_t VectorClock::at(Actor actor) const noexcept {
  const auto found = std::lower_bound(steps_.begin(), steps_.end(), actor, before);
  return found != steps_.end() && found->first == actor ? found->second : 0;
}

std::uint64_t& VectorClock::ensure_step(Actor actor) {
  const auto found = std::lower_bound(steps_.begin(), steps_.end(), actor, before);
  if (found != steps_.end() && found->first == actor) return found->second;
  return steps_.insert(found, {actor, 0})->second;
}

void VectorClock::join(const VectorClock& other) {
  for (const auto& [actor, step] : other.steps_) {
    std::uint64_t& known = ensure_step(actor);
    known = std::max(known, step);
  }
}

}  // namespace kernwright::sim
