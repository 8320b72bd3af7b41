// Pages of earlier texts, found again by their tokens: texts that begin alike share them.
#pragma once

#include "engine/pages.h"

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

namespace kernwright::engine {

/// A tree of full pages; the way from its root to a page spells a text of one salt. Tokens and
/// salts are compared, not only their hashes. The cache is an owner of each of its pages. Not
/// thread-safe.
class PrefixCache {
 public:
  PrefixCache(Pages& pages, std::int32_t page_size);
  ~PrefixCache() { clear(); }
  PrefixCache(const PrefixCache&) = delete;
  PrefixCache& operator=(const PrefixCache&) = delete;

  /// Appends pages of the longest known beginning of `tokens`, `most` at most. Each gets one more
  /// owner. `found` has those of earlier calls for the same tokens: the search goes on behind them.
  /// Where the cache was cleared since, they lose that owner, and it begins anew.
  void find(std::span<const std::int32_t> tokens, std::size_t most,
            std::vector<std::int32_t>& found, std::uint64_t salt = 0);
  /// Keeps the pages of a text: page i has the keys and values of the tokens from i * page_size on.
  /// Where there is a page for the same text already, that one stays. Pages of the text that are
  /// kept already are not searched.
  void add(std::span<const std::int32_t> tokens, std::span<const std::int32_t> pages,
           std::uint64_t salt = 0);
  /// Gives up pages without another owner, those that are idle for the longest time first, until
  /// `wanted` pages are free or no page is idle. Pages of longer texts go before their beginnings.
  void free_up(std::int32_t wanted);
  void clear() noexcept;

  std::int32_t size() const noexcept { return size_; }

 private:
  struct Node {
    Node* parent = nullptr;
    std::uint64_t salt = 0;
    std::uint64_t hash = 0;  ///< of the tokens of the page and the salt
    std::vector<std::int32_t> tokens;
    std::int32_t page = -1;
    std::unordered_multimap<std::uint64_t, std::unique_ptr<Node>> children;
  };

  Node* child(const Node& parent, std::uint64_t hash, std::span<const std::int32_t> tokens,
              std::uint64_t salt) const;
  Node*& node_of(std::int32_t page) noexcept { return nodes_[static_cast<std::size_t>(page)]; }
  static Node* last_leaf(Node* node) noexcept;
  void drop(Node& leaf);

  Pages& pages_;
  std::size_t page_size_;
  Node root_;
  std::vector<Node*> nodes_;  ///< of each page; null: it is not in the cache
  std::int32_t size_ = 0;
};

}  // namespace kernwright::engine
