// Walks down the diagram, and merges equal nodes.
#include "tune/configuration_set.h"

#include "base/byte_text.h"
#include "base/errors.h"
#include "base/format.h"
#include "base/hash.h"
#include "tune/hash_map.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace kernwright {
namespace {

constexpr std::size_t kMaxEdges = std::size_t{1} << 25;  // half a gigabyte
constexpr std::uint64_t kMaxConfigurations = std::numeric_limits<std::int64_t>::max();

/// The node for sorted configurations with equal choices above `level`.
std::uint32_t add_node(ConfigurationSetBuilder& builder, std::span<const Choices> sorted,
                       std::size_t level) {
  if (level == sorted.front().size()) return ConfigurationSetBuilder::kEnd;
  std::vector<ConfigurationSetBuilder::Choice> choices;
  for (std::size_t begin = 0; begin < sorted.size();) {
    const std::uint32_t choice = sorted[begin][level];
    std::size_t end = begin + 1;
    while (end < sorted.size() && sorted[end][level] == choice) ++end;
    choices.push_back({choice, add_node(builder, sorted.subspan(begin, end - begin), level + 1)});
    begin = end;
  }
  return builder.node(level, choices);
}

}  // namespace

ConfigurationSet ConfigurationSet::from(std::span<const Choices> configurations) {
  if (configurations.empty())
    throw InvalidArgument("a set of configurations wants at least one configuration");
  std::vector<Choices> sorted(configurations.begin(), configurations.end());
  std::sort(sorted.begin(), sorted.end());
  if (sorted.front().size() != sorted.back().size())
    throw InvalidArgument("configurations of one set want the same number of parameters");
  std::vector<std::uint32_t> order(sorted.front().size());
  std::iota(order.begin(), order.end(), 0U);
  ConfigurationSetBuilder builder(std::move(order));
  const std::uint32_t root = add_node(builder, sorted, 0);
  return std::move(builder).finish(root);
}

std::size_t ConfigurationSet::bytes() const {
  return edges_.size() * sizeof(Edge) + first_edges_.size() * sizeof(std::uint32_t) +
         totals_.size() * sizeof(std::uint64_t) + sizeof(*this);
}

Choices ConfigurationSet::at(std::uint64_t index) const {
  Choices choices(order_.size());
  at(index, choices);
  return choices;
}

void ConfigurationSet::at(std::uint64_t index, std::span<std::uint32_t> choices) const {
  if (index >= size())
    throw InvalidArgument(format("there is no configuration {}: there are {}", index, size()));
  std::uint32_t node = root_;
  for (const std::uint32_t parameter : order_) {
    const std::span<const Edge> all = edges(node);
    const auto behind = std::upper_bound(
        all.begin(), all.end(), index,
        [](std::uint64_t wanted, const Edge& edge) { return wanted < edge.before; });
    const Edge& edge = *(behind - 1);
    choices[parameter] = edge.choice;
    index -= edge.before;
    node = edge.child;
  }
}

const ConfigurationSet::Edge* ConfigurationSet::find_edge(std::uint32_t node,
                                                          std::uint32_t choice) const {
  const std::span<const Edge> all = edges(node);
  // Mostly no choice is missing in front of it.
  if (choice < all.size() && all[choice].choice == choice) return &all[choice];
  const auto found =
      std::lower_bound(all.begin(), all.end(), choice,
                       [](const Edge& edge, std::uint32_t wanted) { return edge.choice < wanted; });
  return found != all.end() && found->choice == choice ? &*found : nullptr;
}

std::optional<std::uint64_t> ConfigurationSet::find(std::span<const std::uint32_t> choices) const {
  if (choices.size() != order_.size()) return std::nullopt;
  std::uint64_t index = 0;
  std::uint32_t node = root_;
  for (const std::uint32_t parameter : order_) {
    const Edge* edge = find_edge(node, choices[parameter]);
    if (edge == nullptr) return std::nullopt;
    index += edge->before;
    node = edge->child;
  }
  return index;
}

std::uint64_t ConfigurationSet::nearest(std::span<std::uint32_t> choices) const {
  std::uint64_t index = 0;
  std::uint32_t node = root_;
  for (const std::uint32_t parameter : order_) {
    const std::span<const Edge> all = edges(node);
    const std::uint32_t wanted = choices[parameter];
    const auto distance = [&](const Edge& edge) {
      return edge.choice < wanted ? wanted - edge.choice : edge.choice - wanted;
    };
    const Edge& edge = *std::min_element(all.begin(), all.end(), [&](const Edge& a, const Edge& b) {
      return distance(a) < distance(b);
    });
    choices[parameter] = edge.choice;
    index += edge.before;
    node = edge.child;
  }
  return index;
}

std::vector<Choices> ConfigurationSet::used_choices() const {
  std::vector<Choices> used(order_.size());
  std::vector<std::uint32_t> nodes = {root_};
  for (const std::uint32_t parameter : order_) {
    std::vector<std::uint32_t> children;
    for (const std::uint32_t node : nodes)
      for (const Edge& edge : edges(node)) {
        used[parameter].push_back(edge.choice);
        children.push_back(edge.child);
      }
    for (auto* list : {&used[parameter], &children}) {
      std::sort(list->begin(), list->end());
      list->erase(std::unique(list->begin(), list->end()), list->end());
    }
    nodes = std::move(children);
  }
  return used;
}

std::vector<std::uint64_t> ConfigurationSet::within(std::span<const Choices> allowed,
                                                    std::size_t limit) const {
  std::vector<std::uint64_t> found;
  const auto walk = [&](const auto& self, std::uint32_t node, std::size_t level,
                        std::uint64_t index) -> void {
    if (found.size() >= limit) return;
    if (level == order_.size()) {
      found.push_back(index);
      return;
    }
    for (const std::uint32_t choice : allowed[order_[level]])
      if (const Edge* edge = find_edge(node, choice))
        self(self, edge->child, level + 1, index + edge->before);
  };
  walk(walk, root_, 0, 0);
  return found;
}

struct ConfigurationSetBuilder::Known {
  HashMap<std::uint32_t> nodes;
};

ConfigurationSetBuilder::ConfigurationSetBuilder(std::vector<std::uint32_t> order)
    : known_(std::make_unique<Known>()) {
  set_.order_ = std::move(order);
  set_.first_edges_ = {0, 0};
  set_.totals_ = {1};
}

ConfigurationSetBuilder::~ConfigurationSetBuilder() = default;

std::uint32_t ConfigurationSetBuilder::node(std::size_t level, std::span<const Choice> choices) {
  const Hash128 hash = [&] {
    Hasher hasher;
    hasher.field(level);
    hasher.update(std::as_bytes(choices));
    return hasher.digest();
  }();
  const auto [known, is_new] = known_->nodes.try_emplace(hash, 0U);
  if (!is_new) return known->second;
  if (set_.edges_.size() + choices.size() > kMaxEdges)
    throw InvalidArgument(
        format("the valid configurations need more than {}: fewer values, or restrictions over "
               "fewer parameters at a time, make the space smaller",
               describe_bytes(kMaxEdges * sizeof(Edge))));
  std::uint64_t total = 0;
  for (const Choice& choice : choices) {
    set_.edges_.push_back({choice.choice, choice.child, total});
    if (set_.totals_[choice.child] > kMaxConfigurations - total)
      throw InvalidArgument("the space has more than 2**63 - 1 valid configurations");
    total += set_.totals_[choice.child];
  }
  set_.totals_.push_back(total);
  set_.first_edges_.push_back(static_cast<std::uint32_t>(set_.edges_.size()));
  known->second = static_cast<std::uint32_t>(set_.totals_.size() - 1);
  return known->second;
}

ConfigurationSet ConfigurationSetBuilder::finish(std::uint32_t root) && {
  set_.root_ = root;
  set_.edges_.shrink_to_fit();
  set_.first_edges_.shrink_to_fit();
  set_.totals_.shrink_to_fit();
  return std::move(set_);
}

}  // namespace kernwright
