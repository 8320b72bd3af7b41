// The default: guaranteed tasks first, then burstable ones by their shares; best effort fills
// what they leave.
#include "schedule/policy.h"

namespace kernwright::schedule {
namespace {

class DefaultPolicy final : public Policy {
 public:
  std::string name() const override { return "default"; }

  std::optional<std::size_t> choose(std::span<const Candidate> candidates, const Load&) override {
    return first_candidate(candidates, [this](const Candidate& a, const Candidate& b) {
      if (a.qos != b.qos) return a.qos < b.qos;
      if (a.task->spec().priority != b.task->spec().priority) return before(*a.task, *b.task);
      if (a.progress != b.progress) return a.progress < b.progress;
      return before(*a.task, *b.task);
    });
  }

  /// Its launches wait for guaranteed work; a launch that is under way goes on beside it.
  bool holds(Qos qos, const Load& load) const override {
    return qos == Qos::best_effort && load.running[ordinal(Qos::guaranteed)] != 0;
  }
};

}  // namespace

std::shared_ptr<Policy> make_default_policy() { return std::make_shared<DefaultPolicy>(); }

}  // namespace kernwright::schedule
