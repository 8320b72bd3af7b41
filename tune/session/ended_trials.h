// Trials with an outcome, in the order of their ends, and the best of them.
#pragma once

#include "tune/session/session.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace kernwright {

/// For one thread. Trials stay where they are.
class EndedTrials {
 public:
  using List = std::vector<std::unique_ptr<Trial>>;

  const Trial& add(const Trial& trial);

  const List& all() const { return trials_; }
  /// Null while it has no outcome.
  const Trial* find(std::uint64_t number) const;
  /// The least score; of equal ones the least index. Null where none is correct.
  const Trial* best() const { return best_; }
  /// Spent on devices; once for trials with the same code.
  double gpu_s() const { return gpu_s_; }

  /// Each trial once, then null.
  const Trial* deliver();
  bool all_delivered() const { return delivered_ == trials_.size(); }

  /// The best, its ties, and the default.
  SessionResult result(std::optional<std::uint64_t> default_index) const;

 private:
  List trials_;
  std::map<std::uint64_t, const Trial*> by_number_;
  const Trial* best_ = nullptr;
  double gpu_s_ = 0;
  std::size_t delivered_ = 0;
};

}  // namespace kernwright
