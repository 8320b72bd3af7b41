// Looks for a signal and at the time.
#include "sim/exec/block/stop_request.h"

#include "base/format.h"

namespace kernwright::sim {

bool StopRequest::look(Clock::time_point now) noexcept {
  next_look_ = now + kInterval;
  if (limit_.count() != 0 && now - begin_ >= limit_) {
    reason_ = FaultKind::timeout;
  } else if (is_interrupted_ != nullptr && is_interrupted_()) {
    reason_ = FaultKind::interrupted;
  }
  return reason_ != FaultKind::none;
}

std::string StopRequest::message() const {
  if (reason_ == FaultKind::interrupted) return "the launch was interrupted by a signal";
  return format("the launch took longer than {} s (KERNWRIGHT_SIM_TIMEOUT)", limit_.count());
}

}  // namespace kernwright::sim
