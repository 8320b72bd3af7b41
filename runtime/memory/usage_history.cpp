// Thinning out the past.
#include "memory/usage_history.h"

namespace kernwright {

void UsageHistory::add(const HistorySample& sample) noexcept {
  if (samples_.size() == kCapacity) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < samples_.size(); i += 2) samples_[kept++] = samples_[i];
    samples_.resize(kept);
    interval_ *= 2;
  }
  samples_.push_back(sample);
  next_ = sample.operation + interval_;
}

}  // namespace kernwright
