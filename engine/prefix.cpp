// A tree of pages by their tokens; the pages know which of them are idle, and since when.
#include "engine/prefix.h"

#include "base/hash.h"

#include <algorithm>
#include <utility>

namespace kernwright::engine {

namespace {

std::uint64_t hash_of(std::span<const std::int32_t> tokens, std::uint64_t salt) {
  return hash_bytes(std::as_bytes(tokens)).low ^ salt;
}

}  // namespace

PrefixCache::PrefixCache(Pages& pages, std::int32_t page_size)
    : pages_(pages), page_size_(static_cast<std::size_t>(page_size)) {
  nodes_.resize(static_cast<std::size_t>(pages.total()));
}

PrefixCache::Node* PrefixCache::child(const Node& parent, std::uint64_t hash,
                                      std::span<const std::int32_t> tokens,
                                      std::uint64_t salt) const {
  const auto [begin, end] = parent.children.equal_range(hash);
  const auto found = std::find_if(begin, end, [&](const auto& each) {
    return each.second->salt == salt && std::ranges::equal(each.second->tokens, tokens);
  });
  return found == end ? nullptr : found->second.get();
}

void PrefixCache::find(std::span<const std::int32_t> tokens, std::size_t most,
                       std::vector<std::int32_t>& found, std::uint64_t salt) {
  if (!found.empty() && node_of(found.back()) == nullptr) {
    for (const std::int32_t page : found) pages_.release(page);
    found.clear();
  }
  Node* at = found.empty() ? &root_ : node_of(found.back());
  while (found.size() < most && (found.size() + 1) * page_size_ <= tokens.size()) {
    const auto part = tokens.subspan(found.size() * page_size_, page_size_);
    at = child(*at, hash_of(part, salt), part, salt);
    if (at == nullptr) break;
    pages_.retain(at->page);
    found.push_back(at->page);
  }
}

void PrefixCache::add(std::span<const std::int32_t> tokens, std::span<const std::int32_t> pages,
                      std::uint64_t salt) {
  std::size_t known = pages.size();
  while (known > 0 && node_of(pages[known - 1]) == nullptr) --known;
  Node* at = known == 0 ? &root_ : node_of(pages[known - 1]);
  for (std::size_t i = known; i < pages.size() && (i + 1) * page_size_ <= tokens.size(); ++i) {
    const auto part = tokens.subspan(i * page_size_, page_size_);
    const std::uint64_t hash = hash_of(part, salt);
    Node* next = child(*at, hash, part, salt);
    if (next == nullptr) {
      auto made = std::make_unique<Node>();
      next = made.get();
      made->parent = at;
      made->salt = salt;
      made->hash = hash;
      made->tokens.assign(part.begin(), part.end());
      made->page = pages[i];
      pages_.retain_cached(pages[i]);
      at->children.emplace(hash, std::move(made));
      node_of(pages[i]) = next;
      ++size_;
    }
    at = next;
  }
}

/// A node without children, at the end of a text that begins with this one.
PrefixCache::Node* PrefixCache::last_leaf(Node* node) noexcept {
  while (!node->children.empty()) node = node->children.begin()->second.get();
  return node;
}

void PrefixCache::drop(Node& leaf) {
  pages_.release_cached(leaf.page);
  node_of(leaf.page) = nullptr;
  --size_;
  auto& siblings = leaf.parent->children;
  const auto [begin, end] = siblings.equal_range(leaf.hash);
  siblings.erase(
      std::find_if(begin, end, [&](const auto& each) { return each.second.get() == &leaf; }));
}

void PrefixCache::free_up(std::int32_t wanted) {
  // The oldest idle page has children where a sequence computed an equal page itself: those may be
  // younger, or in use.
  while (pages_.free() < wanted && pages_.idle() > 0)
    drop(*last_leaf(node_of(pages_.oldest_idle())));
}

void PrefixCache::clear() noexcept {
  for (Node* at = last_leaf(&root_); at != &root_;) {
    Node* const parent = at->parent;
    drop(*at);
    at = last_leaf(parent);
  }
}

}  // namespace kernwright::engine
