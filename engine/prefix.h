// Pages of earlier texts, found again by their tokens: texts that begin alike share them.
#pragma once

#include "engine/pages.h"
#include "kernels_src/steps/page_copies.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace kernwright::engine {

/// A tree of full pages; the way from its root to a page spells a text of one salt. Tokens and
/// salts are compared, not only their hashes. The cache is an owner of each of its pages.
///
/// With slots of the host, pages are copied there by and by. One that is given up then stays in the
/// tree, and comes back when a text needs it. Who moves the pages asks for the moves after each
/// plan. Not thread-safe.
class PrefixCache {
 public:
  using PageMove = kernels::PageMove;
  /// Of the tokens of a page and a salt.
  using Hash = std::uint64_t (*)(std::span<const std::int32_t> tokens, std::uint64_t salt);
  static std::uint64_t hash_of(std::span<const std::int32_t> tokens, std::uint64_t salt);

  /// With another hash the pages found are the same: equal hashes of different texts cost time.
  PrefixCache(Pages& pages, std::int32_t page_size, Hash hash = hash_of);
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

  /// From now on copies of pages are kept in so many slots. The cache is empty.
  void use_host(std::int32_t slots);
  bool has_host() const noexcept { return slots_.has_value(); }
  std::int32_t host_size() const noexcept { return has_host() ? slots_->idle() : 0; }
  /// As find(), but pages that are on the host alone are found, too: they get free pages of the
  /// device, as long as there are some, and are moved there before they are read.
  void load(std::span<const std::int32_t> tokens, std::size_t most,
            std::vector<std::int32_t>& found, std::uint64_t salt = 0);
  /// What load() moves to the device, once.
  std::vector<PageMove> take_loads();
  /// Whether a page was given up since the last call: its next owner may write to it.
  bool take_given_up() noexcept { return std::exchange(given_up_, false); }
  /// Pages to copy to the host, `most` at most, whose keys and values are computed by now. The
  /// longest unused copies make place for them.
  std::vector<PageMove> take_saves(std::size_t most);

 private:
  struct Node {
    Node* parent = nullptr;
    std::uint64_t salt = 0;
    std::uint64_t hash = 0;  ///< of the tokens of the page and the salt
    std::vector<std::int32_t> tokens;
    std::int32_t page = -1;  ///< -1: it is on the host alone
    std::int32_t slot = -1;  ///< of its copy on the host
    std::unordered_multimap<std::uint64_t, std::unique_ptr<Node>> children;
  };

  Node* child(const Node& parent, std::uint64_t hash, std::span<const std::int32_t> tokens,
              std::uint64_t salt) const;
  Node*& node_of(std::int32_t page) noexcept { return nodes_[static_cast<std::size_t>(page)]; }
  static Node* last_leaf(Node* node) noexcept;
  void keep_in(std::int32_t page, Node& node);
  void remove_page(Node& node);
  void remove_slot(Node& node);
  void drop(Node& leaf);
  void free_slots(std::int32_t wanted);

  Pages& pages_;
  std::size_t page_size_;
  Hash hash_;
  Node root_;
  std::vector<Node*> nodes_;  ///< of each page; null: it is not in the cache
  std::int32_t size_ = 0;

  std::optional<Pages> slots_;        ///< those in use are idle: the longest unused is the oldest
  std::vector<Node*> slot_nodes_;     ///< of each slot; null: it is free
  std::deque<std::int32_t> unsaved_;  ///< pages without a copy, and some that were given up
  std::vector<PageMove> loads_;
  bool given_up_ = false;
};

}  // namespace kernwright::engine
