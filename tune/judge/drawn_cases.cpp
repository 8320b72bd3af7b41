// A list, searched from its front: a judgement has some twenty cases.
#include "tune/judge/drawn_cases.h"

#include <algorithm>

#include "tune/judge/host_case.h"

namespace kernwright {
namespace {

/// Some judgements' worth; more would only be walked through.
constexpr std::size_t kMostCases = 128;

std::size_t size_of(const HostCase& drawn) {
  std::size_t sum = sizeof drawn + drawn.bytes();
  for (const auto& expected : drawn.expected) sum += expected ? expected->bytes.size() : 0;
  return sum;
}

}  // namespace

CaseRef DrawnCases::get(std::uint64_t seed, int number, const std::function<CaseRef()>& draw) {
  {
    const std::lock_guard lock(mutex_);
    const auto at = std::find_if(cases_.begin(), cases_.end(), [&](const CaseRef& each) {
      return each->seed == seed && each->number == number;
    });
    if (at != cases_.end()) {
      cases_.splice(cases_.begin(), cases_, at);
      return cases_.front();
    }
  }
  CaseRef drawn = draw();
  const std::lock_guard lock(mutex_);
  cases_.push_front(drawn);
  bytes_ += size_of(*drawn);
  while (!cases_.empty() && (bytes_ > limit_ || cases_.size() > kMostCases)) {
    bytes_ -= size_of(*cases_.back());
    cases_.pop_back();
  }
  return drawn;
}

std::size_t DrawnCases::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace kernwright
