// The table of policies.
#include "schedule/policy.h"

#include "base/errors.h"
#include "base/format.h"

namespace kernwright::schedule {
namespace {

struct Named {
  const char* name;
  std::shared_ptr<Policy> (*make)();
};

constexpr Named kPolicies[] = {
    {"default", &make_default_policy},
    {"strict", &make_strict_policy},
    {"weighted", &make_weighted_policy},
    {"deadline", &make_deadline_policy},
};

}  // namespace

bool Policy::before(const Task& a, const Task& b) const {
  if (a.spec().priority != b.spec().priority) return a.spec().priority > b.spec().priority;
  return a.id() < b.id();
}

std::shared_ptr<Policy> policy_named(std::string_view name) {
  for (const Named& policy : kPolicies) {
    if (name == policy.name) return policy.make();
  }
  std::string known;
  for (const Named& policy : kPolicies)
    known += format("{}\"{}\"", known.empty() ? "" : ", ", policy.name);
  throw NameNotFound(format("no policy \"{}\": there are {}", name, known));
}

std::vector<std::string> policy_names() {
  std::vector<std::string> names;
  for (const Named& policy : kPolicies) names.emplace_back(policy.name);
  return names;
}

}  // namespace kernwright::schedule
