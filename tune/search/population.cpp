// Differential evolution and a genetic algorithm, one member at a time.
#include "tune/search/population.h"

#include <algorithm>
#include <cmath>

namespace kernwright {
namespace {

constexpr std::size_t kPopulation = 20;
constexpr std::size_t kTries = 30;

}  // namespace

std::uint64_t differential_offspring(const ConfigurationSet& set,
                                     std::span<const std::uint64_t> members, std::size_t target,
                                     Random& random) {
  const auto any = [&] { return set.at(members[random.below(members.size())]); };
  const Choices target_choices = set.at(members[target]);
  const Choices base = random.uniform() < 0.5 ? set.at(members.front()) : any();
  const Choices a = any();
  const Choices b = any();
  const double scale = 0.4 + 0.6 * random.uniform();
  const std::size_t forced = random.below(target_choices.size());
  Choices child = target_choices;
  for (std::size_t i = 0; i < target_choices.size(); ++i) {
    if (i != forced && random.uniform() > 0.7) continue;
    const double difference = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    const double moved = std::round(static_cast<double>(base[i]) + scale * difference);
    child[i] = static_cast<std::uint32_t>(std::clamp(moved, 0.0, 4294967295.0));
  }
  return set.nearest(child);
}

void DifferentialEvolution::propose(std::size_t wanted) {
  if (members_.size() < std::min<std::uint64_t>(kPopulation, set().size())) return;
  std::vector<std::uint64_t> indices;
  const auto best =
      std::min_element(members_.begin(), members_.end(),
                       [](const Member& a, const Member& b) { return a.cost < b.cost; });
  std::swap(*best, members_.front());
  for (const Member& member : members_) indices.push_back(member.index);
  for (std::size_t tries = 0; wanted > 0 && tries < kTries * members_.size(); ++tries) {
    const std::size_t target = next_target_++ % members_.size();
    const std::uint64_t child = differential_offspring(set(), indices, target, random());
    if (const std::optional<double> cost = known_cost(child)) {
      if (*cost < members_[target].cost) members_[target] = {child, *cost};
      continue;
    }
    if (!take(child)) continue;
    targets_[child] = members_[target].index;
    --wanted;
  }
}

void DifferentialEvolution::learn(std::uint64_t index, double cost) {
  const auto target = targets_.find(index);
  const std::uint64_t rival = target == targets_.end() ? index : target->second;
  if (target != targets_.end()) targets_.erase(target);
  if (members_.size() < kPopulation) {
    members_.push_back({index, cost});
    return;
  }
  // Its rival may have gone meanwhile: then it competes with the worst.
  auto place = std::find_if(members_.begin(), members_.end(),
                            [&](const Member& member) { return member.index == rival; });
  if (place == members_.end())
    place = std::max_element(members_.begin(), members_.end(),
                             [](const Member& a, const Member& b) { return a.cost < b.cost; });
  if (cost <= place->cost) *place = {index, cost};
}

std::uint64_t Genetic::choose_parent() {
  // The better of two: members are sorted.
  const std::uint64_t a = random().below(members_.size());
  const std::uint64_t b = random().below(members_.size());
  return members_[std::min(a, b)].index;
}

void Genetic::propose(std::size_t wanted) {
  if (members_.size() < std::min<std::uint64_t>(kPopulation, set().size())) return;
  for (std::size_t tries = 0; wanted > 0 && tries < kTries * kPopulation; ++tries) {
    Choices child = set().at(choose_parent());
    const Choices other = set().at(choose_parent());
    for (std::size_t i = 0; i < child.size(); ++i)
      if (random().uniform() < 0.5) child[i] = other[i];
    std::uint64_t index = set().nearest(child);
    if (random().uniform() < 0.5 || !is_new(index)) index = mutate(index, 1 + random().below(2));
    if (take(index)) --wanted;
  }
}

void Genetic::learn(std::uint64_t index, double cost) {
  std::erase_if(members_, [&](const Member& member) { return member.index == index; });
  const auto place =
      std::upper_bound(members_.begin(), members_.end(), cost,
                       [](double wanted, const Member& member) { return wanted < member.cost; });
  members_.insert(place, {index, cost});
  if (members_.size() > kPopulation) members_.pop_back();
}

}  // namespace kernwright
