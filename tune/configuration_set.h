// A set of configurations as a decision diagram: small, counted, indexed without being listed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace kernwright {

/// The choice of each parameter: indices into the parameters' lists of values.
using Choices = std::vector<std::uint32_t>;

/// A node chooses a value of one parameter, and has the number of configurations behind each
/// choice. Configurations with the same remaining choices share the nodes for them. Count, index
/// and membership are exact and take no more than one step for each parameter.
///
/// Immutable once made; any thread may read it.
class ConfigurationSet {
 public:
  /// A set of exactly these configurations, in lexicographic order; each once, even if repeated.
  static ConfigurationSet from(std::span<const Choices> configurations);

  std::uint64_t size() const { return totals_[root_]; }
  std::size_t parameter_count() const { return order_.size(); }
  std::size_t node_count() const { return totals_.size(); }
  /// Bytes of memory in use.
  std::size_t bytes() const;
  /// The parameters in their order of choice; the set is sorted by them in this order.
  std::span<const std::uint32_t> order() const { return order_; }

  /// The configuration of this index; the index must be below size().
  Choices at(std::uint64_t index) const;
  void at(std::uint64_t index, std::span<std::uint32_t> choices) const;
  /// Its index; nothing when it is not in the set.
  std::optional<std::uint64_t> find(std::span<const std::uint32_t> choices) const;

  /// Makes `choices` valid: each parameter in turn takes the nearest choice on the way to a valid
  /// configuration. Returns the index.
  std::uint64_t nearest(std::span<std::uint32_t> choices) const;

  /// For each parameter its choices in all configurations, sorted.
  std::vector<Choices> used_choices() const;
  /// Indices of the configurations with choices only among `allowed` (sorted, one list for each
  /// parameter), ascending; no more than `limit`.
  std::vector<std::uint64_t> within(std::span<const Choices> allowed, std::size_t limit) const;

 private:
  friend class ConfigurationSetBuilder;

  struct Edge {
    std::uint32_t choice;
    std::uint32_t child;
    std::uint64_t before;  ///< configurations below the node's earlier edges
  };
  static constexpr std::uint32_t kEnd = 0;  ///< the node behind the last parameter

  std::span<const Edge> edges(std::uint32_t node) const {
    return std::span(edges_).subspan(first_edges_[node],
                                     first_edges_[node + 1] - first_edges_[node]);
  }
  const Edge* find_edge(std::uint32_t node, std::uint32_t choice) const;

  std::vector<std::uint32_t> order_;
  std::vector<Edge> edges_;                 ///< of each node one after the other, by choice
  std::vector<std::uint32_t> first_edges_;  ///< of each node, and one more
  std::vector<std::uint64_t> totals_;       ///< configurations below each node
  std::uint32_t root_ = kEnd;
};

/// Makes a set from its last parameter to its first: equal nodes become one.
class ConfigurationSetBuilder {
 public:
  using Edge = ConfigurationSet::Edge;

  explicit ConfigurationSetBuilder(std::vector<std::uint32_t> order);
  ~ConfigurationSetBuilder();
  ConfigurationSetBuilder(const ConfigurationSetBuilder&) = delete;
  ConfigurationSetBuilder& operator=(const ConfigurationSetBuilder&) = delete;

  static constexpr std::uint32_t kEnd = ConfigurationSet::kEnd;
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};  ///< a node without configurations

  struct Choice {
    std::uint32_t choice;
    std::uint32_t child;
  };
  /// The node at this level with these choices, ascending. Throws InvalidArgument for too many
  /// nodes for memory, or for more configurations than 63 bits count.
  std::uint32_t node(std::size_t level, std::span<const Choice> choices);
  std::uint64_t total(std::uint32_t node) const { return set_.totals_[node]; }

  ConfigurationSet finish(std::uint32_t root) &&;

 private:
  struct Known;

  ConfigurationSet set_;
  std::unique_ptr<Known> known_;
};

}  // namespace kernwright
