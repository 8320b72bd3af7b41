// Vector clocks as short sorted lists.
#include "sim/check/order/vector_clock.h"

#include <algorithm>

namespace kernwright::sim {
namespace {

bool before(const std::pair<Actor, std::uint64_t>& entry, Actor actor) {
  return entry.first < actor;
}

}  // namespace

std::uint64_t VectorClock::of(Actor actor) const noexcept {
  const auto found = std::lower_bound(steps_.begin(), steps_.end(), actor, before);
  return found != steps_.end() && found->first == actor ? found->second : 0;
}

std::uint64_t VectorClock::advance(Actor actor) {
  auto found = std::lower_bound(steps_.begin(), steps_.end(), actor, before);
  if (found == steps_.end() || found->first != actor) found = steps_.insert(found, {actor, 0});
  return ++found->second;
}

void VectorClock::join(const VectorClock& other) {
  std::vector<std::pair<Actor, std::uint64_t>> both;
  both.reserve(steps_.size() + other.steps_.size());
  auto mine = steps_.begin();
  auto its = other.steps_.begin();
  while (mine != steps_.end() || its != other.steps_.end()) {
    if (its == other.steps_.end() || (mine != steps_.end() && mine->first < its->first)) {
      both.push_back(*mine++);
    } else if (mine == steps_.end() || its->first < mine->first) {
      both.push_back(*its++);
    } else {
      both.emplace_back(mine->first, std::max(mine->second, its->second));
      ++mine;
      ++its;
    }
  }
  steps_ = std::move(both);
}

}  // namespace kernwright::sim
