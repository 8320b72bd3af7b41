// Strict classes: a task makes no progress while one of a class in front of its own runs or waits.
#include "schedule/policy.h"

namespace kernwright::schedule {
namespace {

class StrictPolicy final : public Policy {
 public:
  std::string name() const override { return "strict"; }

  std::optional<std::size_t> choose(std::span<const Candidate> candidates,
                                    const Load& load) override {
    const auto first = first_candidate(candidates, [this](const Candidate& a, const Candidate& b) {
      return a.qos != b.qos ? a.qos < b.qos : before(*a.task, *b.task);
    });
    if (first && holds(candidates[*first].qos, load)) return std::nullopt;
    return first;
  }

  bool holds(Qos qos, const Load& load) const override {
    for (std::size_t i = 0; i < ordinal(qos); ++i) {
      if (load.running[i] + load.waiting[i] != 0) return true;
    }
    return false;
  }
};

}  // namespace

std::shared_ptr<Policy> make_strict_policy() { return std::make_shared<StrictPolicy>(); }

}  // namespace kernwright::schedule
