// Joining the knowledge of warps.
#include "sim/check/order/clock.h"

namespace kernwright::sim {

SharedPast join(const SharedPast& a, const SharedPast& b) {
  if (a == nullptr || a == b) return b;
  if (b == nullptr) return a;
  const bool a_larger = a->size() >= b->size();
  auto joined = std::make_shared<Past>(a_larger ? *a : *b);
  for (const auto& [block, past] : a_larger ? *b : *a) (*joined)[block].join(past);
  return joined;
}

}  // namespace kernwright::sim
