// Pages of earlier texts, found again by their tokens: texts that begin alike share them.
#pragma once

#include "engine/pages.h"

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

namespace kernwright::engine {

/// A tree of full pages; the way from its root to a page spells a text. Tokens are compared, not
/// only their hashes. The cache is an owner of each of its pages. Not thread-safe.
class PrefixCache {
 public:
  PrefixCache(Pages& pages, std::int32_t page_size);
  ~PrefixCache() { clear(); }
  PrefixCache(const PrefixCache&) = delete;
  PrefixCache& operator=(const PrefixCache&) = delete;

  /// The pages of the longest known beginning of `tokens`, `most` at most. Each gets one more
  /// owner.
  std::vector<std::int32_t> find(std::span<const std::int32_t> tokens, std::size_t most);
  /// Keeps the pages of a text: page i has the keys and values of the tokens from i * page_size on.
  /// Where there is a page for the same text already, that one stays.
  void add(std::span<const std::int32_t> tokens, std::span<const std::int32_t> pages);
  /// Gives up pages without another owner, the longest unused first, until `wanted` pages are free
  /// or no page is idle.
  void free_up(std::int32_t wanted);
  void clear() noexcept;

  std::int32_t size() const noexcept { return static_cast<std::int32_t>(by_use_.size()); }

 private:
  struct Node {
    Node* parent = nullptr;
    std::uint64_t hash = 0;  ///< of the tokens of the page
    std::vector<std::int32_t> tokens;
    std::int32_t page = -1;
    std::uint64_t used = 0;  ///< later uses have higher numbers; a parent's is above its children's
    std::unordered_multimap<std::uint64_t, std::unique_ptr<Node>> children;
  };

  Node* child(const Node& parent, std::span<const std::int32_t> tokens) const;
  void touch(Node& last);
  void drop(Node& leaf);
  void drop_tree(Node& node);

  Pages& pages_;
  std::size_t page_size_;
  Node root_;
  std::map<std::uint64_t, Node*> by_use_;
  std::uint64_t last_use_ = 0;
};

}  // namespace kernwright::engine
