// A plan that calls of one thread take while a scope lives, to measure the plan or to test it.
#pragma once

#include <optional>
#include <utility>

namespace kernwright::kernels {

/// The calls that ask for a `Plan` say what a plan does. Scopes end in the reverse order.
template <typename Plan>
class PlanScope {
 public:
  explicit PlanScope(Plan plan) : before_(std::exchange(current(), std::move(plan))) {}
  ~PlanScope() { current() = std::move(before_); }
  PlanScope(const PlanScope&) = delete;
  PlanScope& operator=(const PlanScope&) = delete;

  /// The plan of this thread's innermost scope.
  static std::optional<Plan>& current() noexcept {
    thread_local std::optional<Plan> plan;
    return plan;
  }

 private:
  std::optional<Plan> before_;
};

}  // namespace kernwright::kernels
