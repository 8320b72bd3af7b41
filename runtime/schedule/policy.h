// The order of tasks: the interface of policies, and those with a name.
#pragma once

#include "schedule/task.h"

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernwright::schedule {

/// A task with leave to begin: the first in line of its class and tenant.
struct Candidate {
  const Task* task = nullptr;
  std::string_view tenant;  ///< the model, or the task's or class's own account
  Qos qos = Qos::guaranteed;
  std::optional<Time> deadline;  ///< on the scheduler's clock
  double share = 0;              ///< requested of the device's time; 0 without one
  double used = 0;               ///< of the last second, by its tenant
  double progress = 0;           ///< Tenant::progress()
};

/// What a scheduler does at this moment.
struct Load {
  Time now{0};
  std::array<std::size_t, kClasses> waiting{};  ///< tasks by class
  std::array<std::size_t, kClasses> running{};
};

/// Decides the order of tasks; knows nothing of memory or streams. Called with a lock held.
class Policy {
 public:
  virtual ~Policy() = default;
  virtual std::string name() const = 0;
  /// The order of tasks of one class and tenant: by default higher priorities first, then by
  /// submission. It must not change while tasks wait.
  virtual bool before(const Task& a, const Task& b) const;
  /// The position of the next to begin; nothing keeps all back until something changes.
  virtual std::optional<std::size_t> choose(std::span<const Candidate> candidates,
                                            const Load& load) = 0;
  /// Whether tasks of the class wait at their launches at this load.
  virtual bool holds(Qos, const Load&) const { return false; }
  /// Whether choose() may take other locks: it is then called with none held.
  virtual bool is_foreign() const noexcept { return false; }
};

/// "default", "strict", "weighted" or "deadline". Throws NameNotFound, and lists them.
std::shared_ptr<Policy> policy_named(std::string_view name);
std::vector<std::string> policy_names();

std::shared_ptr<Policy> make_default_policy();
std::shared_ptr<Policy> make_strict_policy();
std::shared_ptr<Policy> make_weighted_policy();
std::shared_ptr<Policy> make_deadline_policy();

/// The first candidate by `less`; nothing of none.
template <typename Less>
std::optional<std::size_t> first_candidate(std::span<const Candidate> candidates,
                                           const Less& less) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (!best || less(candidates[i], candidates[*best])) best = i;
  }
  return best;
}

}  // namespace kernwright::schedule
