// A tree of pages by their tokens, in the order of their last uses.
#include "engine/prefix.h"

#include "base/hash.h"

#include <algorithm>

namespace kernwright::engine {

namespace {

std::uint64_t hash_of(std::span<const std::int32_t> tokens) {
  return hash_bytes(std::as_bytes(tokens)).low;
}

}  // namespace

PrefixCache::PrefixCache(Pages& pages, std::int32_t page_size)
    : pages_(pages), page_size_(static_cast<std::size_t>(page_size)) {}

PrefixCache::Node* PrefixCache::child(const Node& parent,
                                      std::span<const std::int32_t> tokens) const {
  const auto [begin, end] = parent.children.equal_range(hash_of(tokens));
  const auto found = std::find_if(begin, end, [&](const auto& each) {
    return std::ranges::equal(each.second->tokens, tokens);
  });
  return found == end ? nullptr : found->second.get();
}

std::vector<std::int32_t> PrefixCache::find(std::span<const std::int32_t> tokens,
                                            std::size_t most) {
  std::vector<std::int32_t> found;
  Node* at = &root_;
  while (found.size() < most && (found.size() + 1) * page_size_ <= tokens.size()) {
    Node* const next = child(*at, tokens.subspan(found.size() * page_size_, page_size_));
    if (next == nullptr) break;
    pages_.retain(next->page);
    found.push_back(next->page);
    at = next;
  }
  touch(*at);
  return found;
}

void PrefixCache::add(std::span<const std::int32_t> tokens, std::span<const std::int32_t> pages) {
  Node* at = &root_;
  for (std::size_t i = 0; i < pages.size() && (i + 1) * page_size_ <= tokens.size(); ++i) {
    const auto part = tokens.subspan(i * page_size_, page_size_);
    Node* next = child(*at, part);
    if (next == nullptr) {
      auto made = std::make_unique<Node>();
      next = made.get();
      made->parent = at;
      made->hash = hash_of(part);
      made->tokens.assign(part.begin(), part.end());
      made->page = pages[i];
      made->used = ++last_use_;
      at->children.emplace(made->hash, std::move(made));
      by_use_.emplace(next->used, next);
      pages_.retain_cached(next->page);
    }
    at = next;
  }
  touch(*at);
}

/// Counts a use of the pages up to `last`, whose parents become newer than their children.
void PrefixCache::touch(Node& last) {
  for (Node* at = &last; at != &root_; at = at->parent) {
    by_use_.erase(at->used);
    at->used = ++last_use_;
    by_use_.emplace(at->used, at);
  }
}

void PrefixCache::drop(Node& leaf) {
  pages_.release_cached(leaf.page);
  by_use_.erase(leaf.used);
  auto& siblings = leaf.parent->children;
  const auto [begin, end] = siblings.equal_range(leaf.hash);
  siblings.erase(
      std::find_if(begin, end, [&](const auto& each) { return each.second.get() == &leaf; }));
}

void PrefixCache::free_up(std::int32_t wanted) {
  for (auto each = by_use_.begin();
       each != by_use_.end() && pages_.free() < wanted && pages_.idle() > 0;) {
    Node& node = *(each++)->second;
    if (node.children.empty() && pages_.owners(node.page) == 1) drop(node);
  }
  // An idle page may have children in use, of a sequence that computed an equal page itself.
  while (pages_.free() < wanted && pages_.idle() > 0) {
    const auto found = std::ranges::find_if(
        by_use_, [&](const auto& each) { return pages_.owners(each.second->page) == 1; });
    drop_tree(*found->second);
  }
}

void PrefixCache::drop_tree(Node& node) {
  while (!node.children.empty()) drop_tree(*node.children.begin()->second);
  drop(node);
}

void PrefixCache::clear() noexcept {
  while (!by_use_.empty()) drop(*by_use_.begin()->second);
}

}  // namespace kernwright::engine
