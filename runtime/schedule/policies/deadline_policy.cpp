// Earliest deadline first, in each class; tasks without a deadline go last.
#include "schedule/policy.h"

namespace kernwright::schedule {
namespace {

class DeadlinePolicy final : public Policy {
 public:
  std::string name() const override { return "deadline"; }

  bool before(const Task& a, const Task& b) const override {
    const auto first = a.deadline();
    const auto second = b.deadline();
    if (first != second) return first && (!second || *first < *second);
    return Policy::before(a, b);
  }

  std::optional<std::size_t> choose(std::span<const Candidate> candidates, const Load&) override {
    return first_candidate(candidates, [this](const Candidate& a, const Candidate& b) {
      return a.qos != b.qos ? a.qos < b.qos : before(*a.task, *b.task);
    });
  }
};

}  // namespace

std::shared_ptr<Policy> make_deadline_policy() { return std::make_shared<DeadlinePolicy>(); }

}  // namespace kernwright::schedule
