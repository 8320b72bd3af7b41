// Counting calls against a plan.
#include "driver/fault_plan.h"

#include <utility>

namespace kernwright {

void FaultSchedule::arm(FaultPlan plan) {
  const std::lock_guard lock(mutex_);
  plan_ = std::move(plan);
  seen_ = 0;
  fired_ = 0;
  last_.clear();
}

void FaultSchedule::disarm() {
  const std::lock_guard lock(mutex_);
  plan_.reset();
}

void FaultSchedule::reset() {
  const std::lock_guard lock(mutex_);
  plan_.reset();
  seen_ = fired_ = 0;
  last_.clear();
  failed_.clear();
}

std::optional<FaultPlan> FaultSchedule::enter(std::string_view function) {
  const std::lock_guard lock(mutex_);
  if (!plan_ || (!plan_->function.empty() && plan_->function != function)) return std::nullopt;
  ++seen_;
  const bool due =
      plan_->repeat == FaultPlan::Repeat::once ? seen_ == plan_->call : seen_ >= plan_->call;
  if (!due) return std::nullopt;
  ++fired_;
  last_ = function;
  failed_.emplace(function);
  return plan_;
}

std::uint64_t FaultSchedule::fired() const {
  const std::lock_guard lock(mutex_);
  return fired_;
}

std::string FaultSchedule::last_function() const {
  const std::lock_guard lock(mutex_);
  return last_;
}

std::set<std::string> FaultSchedule::failed_functions() const {
  const std::lock_guard lock(mutex_);
  return failed_;
}

}  // namespace kernwright
