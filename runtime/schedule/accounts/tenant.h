// An account of device time: of one model's tasks, of one task with a share, or of a class.
#pragma once

#include "memory/evictable_buffer.h"
#include "schedule/accounts/budget.h"
#include "schedule/accounts/meter.h"
#include "schedule/task_memory.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

namespace kernwright::schedule {

/// Guarded by the mutex of its scheduler.
class Tenant {
 public:
  /// Tenants without a share get what the weights of others leave, and at least this one.
  static constexpr double kLeastWeight = 0.01;

  /// `memory` in bytes, of a model as a whole; 0 without a limit.
  Tenant(std::string name, std::optional<double> request, double limit,
         std::uint64_t memory_request = 0, std::uint64_t memory_limit = 0)
      : name_(std::move(name)),
        request_(request),
        limit_(limit),
        memory_request_(memory_request),
        memory_limit_(memory_limit) {}

  const std::string& name() const noexcept { return name_; }
  const std::optional<double>& request() const noexcept { return request_; }
  double limit() const noexcept { return limit_; }
  double weight() const noexcept { return std::max(request_.value_or(kLeastWeight), kLeastWeight); }
  std::uint64_t memory_request() const noexcept { return memory_request_; }
  std::uint64_t memory_limit() const noexcept { return memory_limit_; }
  const Meter& meter() const noexcept { return meter_; }
  /// Device time divided by the weight, in seconds: of two tenants the lower one is behind.
  double progress() const noexcept { return progress_; }

  void charge(Time now, Time busy) noexcept { settle(now, busy, Time(0)); }
  /// Counts device time before it is used; settle() then takes `charged` back.
  void precharge(Time expected) noexcept { progress_ += seconds(expected) / weight(); }
  void settle(Time now, Time busy, Time charged) noexcept {
    busy = std::max(busy, Time(0));
    meter_.add(now, busy);
    progress_ += seconds(busy - charged) / weight();
  }
  /// A tenant that was idle does not get the time back that it left to others.
  void catch_up(double progress) noexcept { progress_ = std::max(progress_, progress); }
  /// Whether it has had no tasks for the second of its meter, and no array has its memory.
  bool is_idle(Time now) const noexcept {
    return live == 0 && now - left >= std::chrono::seconds(1) && memory.use_count() <= 1 &&
           evictable.use_count() <= 1;
  }

  std::uint64_t number = 0;  ///< counts the tenants of its scheduler
  std::size_t live = 0;      ///< tasks of it that are not over
  Time left{0};              ///< when the last of these was over
  std::size_t admitted = 0;  ///< of these, the admitted ones
  Reservation held;          ///< the share, and a model's memory, while any of them is admitted
  std::shared_ptr<TaskMemory> memory;        ///< of a model with a memory limit
  std::shared_ptr<EvictionGroup> evictable;  ///< of a model, from its first task on

 private:
  const std::string name_;
  const std::optional<double> request_;
  const double limit_;
  const std::uint64_t memory_request_;
  const std::uint64_t memory_limit_;
  Meter meter_;
  double progress_ = 0;
};

}  // namespace kernwright::schedule
