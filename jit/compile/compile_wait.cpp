// The limits of the waits of each thread.
#include "jit/compile/compile_wait.h"

#include <algorithm>
#include <utility>

#include "base/format.h"

namespace kernwright {
namespace {

thread_local const WaitLimits* innermost = nullptr;

std::atomic<InterruptCheck>& interrupt_check() noexcept {
  static std::atomic<InterruptCheck> check = nullptr;
  return check;
}

}  // namespace

WaitLimits WaitLimits::within(std::optional<std::chrono::milliseconds> limit) const {
  WaitLimits result = *this;
  if (!limit) return result;
  const auto now = std::chrono::steady_clock::now();
  // A limit too large for the clock means no limit.
  if (*limit > std::chrono::hours(24 * 365)) return result;
  if (deadline && *deadline <= now + *limit) return result;
  result.deadline = now + *limit;
  result.timeout = *limit;
  return result;
}

WaitScope::WaitScope(WaitLimits limits) : limits_(std::move(limits)), outer_(innermost) {
  innermost = &limits_;
}

WaitScope::~WaitScope() { innermost = outer_; }

WaitLimits current_wait_limits() { return innermost == nullptr ? WaitLimits{} : *innermost; }

void set_interrupt_check(InterruptCheck check) noexcept { interrupt_check().store(check); }

void check_wait(const WaitLimits& limits, const std::string& what) {
  if (limits.stop && limits.stop->load()) {
    throw Cancelled(format("{} was cancelled", what));
  }
  if (const InterruptCheck check = interrupt_check().load(); check != nullptr && check()) {
    throw Interrupted(format("{} was interrupted by a signal", what));
  }
  if (limits.deadline && std::chrono::steady_clock::now() >= *limits.deadline) {
    throw Timeout(format("{} took longer than the timeout of {} ms", what, limits.timeout.count()));
  }
}

}  // namespace kernwright
