// Weighted shares: whoever is furthest behind its share of device time goes next, of any class.
#include "schedule/policy.h"

namespace kernwright::schedule {
namespace {

class WeightedPolicy final : public Policy {
 public:
  std::string name() const override { return "weighted"; }

  std::optional<std::size_t> choose(std::span<const Candidate> candidates, const Load&) override {
    return first_candidate(candidates, [this](const Candidate& a, const Candidate& b) {
      if (a.progress != b.progress) return a.progress < b.progress;
      if (a.qos != b.qos) return a.qos < b.qos;
      return before(*a.task, *b.task);
    });
  }
};

}  // namespace

std::shared_ptr<Policy> make_weighted_policy() { return std::make_shared<WeightedPolicy>(); }

}  // namespace kernwright::schedule
