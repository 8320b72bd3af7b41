// The tasks that wait for their beginning, by class and tenant.
#pragma once

#include "schedule/accounts/tenant.h"
#include "schedule/policy.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <vector>

namespace kernwright::schedule {

/// Lines of tasks in the order of a policy, one for each class and tenant. Not thread-safe.
class Waiting {
 public:
  explicit Waiting(const Policy& policy) : policy_(policy) {}

  void add(const TaskPointer& task);
  /// False when it is not there.
  bool remove(const TaskPointer& task) noexcept;
  bool contains(const TaskPointer& task) const;
  /// Gives the task another class, also where it does not wait.
  void move(const TaskPointer& task, Qos qos);
  /// The first of each line.
  std::vector<TaskPointer> heads() const;
  /// All, class by class.
  std::vector<TaskPointer> all() const;
  std::size_t count(Qos qos) const noexcept { return counts_[ordinal(qos)]; }
  std::size_t count() const noexcept { return counts_[0] + counts_[1] + counts_[2]; }
  const std::array<std::size_t, kClasses>& counts() const noexcept { return counts_; }
  /// Tasks in front of it: those of classes in front, and of its own class by the policy's order.
  std::size_t count_ahead(const Task& task) const;

 private:
  struct Less {
    const Policy* policy;
    bool operator()(const TaskPointer& a, const TaskPointer& b) const {
      return policy->before(*a, *b);
    }
  };
  using Line = std::set<TaskPointer, Less>;
  /// Tasks that ask for nothing have lines of their own: they may go while others wait for memory.
  /// By the number of the tenant: the order of addresses differs from run to run.
  using Key = std::tuple<Qos, std::uint64_t, bool>;
  static Key find_key(const Task& task) noexcept;

  const Policy& policy_;
  std::map<Key, Line> lines_;
  std::array<std::size_t, kClasses> counts_{};
};

}  // namespace kernwright::schedule
