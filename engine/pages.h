// The pages of key and value caches, by number: which are free, and how many owners each has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kernwright::engine {

/// Pages 0 to total() - 1. A page has an owner for each retain(), and is free without one. The
/// prefix cache is an owner, too: a page is idle while it has no other. Idle pages are in the order
/// in which they became so. Not thread-safe.
class Pages {
 public:
  /// Throws InvalidArgument for fewer than one page.
  explicit Pages(std::int32_t total);

  std::int32_t total() const noexcept { return static_cast<std::int32_t>(owners_.size()); }
  std::int32_t free() const noexcept { return static_cast<std::int32_t>(free_.size()); }
  std::int32_t idle() const noexcept { return idle_; }
  /// The page that is idle for the longest time; -1 without one.
  std::int32_t oldest_idle() const noexcept { return links_.back().next; }
  /// Neither free nor idle.
  std::int32_t used() const noexcept { return total() - free() - idle(); }
  std::int32_t owners(std::int32_t page) const;

  /// A free page, with one owner. Throws std::logic_error when there is none: ask free() first.
  std::int32_t take();
  /// One more owner of a used page. Throws std::logic_error for a free one.
  void retain(std::int32_t page);
  /// One owner less; the last one frees the page. Throws std::logic_error for a free one.
  void release(std::int32_t page);

  /// A draft model has the keys and values of its tokens, too; until it is taken again.
  void set_followed(std::int32_t page) { followed_[static_cast<std::size_t>(page)] = true; }
  bool is_followed(std::int32_t page) const { return followed_[static_cast<std::size_t>(page)]; }

  /// retain() by the prefix cache, and its release(). Throw std::logic_error, too, for a page it
  /// has already, or has not.
  void retain_cached(std::int32_t page);
  void release_cached(std::int32_t page);

 private:
  /// Of an idle page to its neighbours; the last link is the list's own.
  struct Link {
    std::int32_t previous = -1, next = -1;
  };

  Link& link(std::int32_t page) noexcept;
  void add_idle(std::int32_t page) noexcept;
  void remove_idle(std::int32_t page) noexcept;

  std::vector<std::int32_t> owners_;
  std::vector<bool> cached_;  ///< whether the prefix cache is an owner
  std::vector<bool> followed_;
  std::vector<Link> links_;
  std::int32_t idle_ = 0;
  std::vector<std::int32_t> free_;  ///< the last one is taken next
};

}  // namespace kernwright::engine
