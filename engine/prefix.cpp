// A tree of pages by their tokens; the pages know which of them are idle, and since when.
#include "engine/prefix.h"

#include "base/hash.h"

#include <algorithm>
#include <utility>

namespace kernwright::engine {

std::uint64_t PrefixCache::hash_of(std::span<const std::int32_t> tokens, std::uint64_t salt) {
  return hash_bytes(std::as_bytes(tokens)).low ^ salt;
}

PrefixCache::PrefixCache(Pages& pages, std::int32_t page_size, Hash hash)
    : pages_(pages), page_size_(static_cast<std::size_t>(page_size)), hash_(hash) {
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
    at = child(*at, hash_(part, salt), part, salt);
    if (at == nullptr || at->page < 0) break;
    pages_.retain(at->page);
    found.push_back(at->page);
  }
}

void PrefixCache::load(std::span<const std::int32_t> tokens, std::size_t most,
                       std::vector<std::int32_t>& found, std::uint64_t salt) {
  const std::size_t before = loads_.size();
  Node* at = found.empty() ? &root_ : node_of(found.back());
  while (found.size() < most && (found.size() + 1) * page_size_ <= tokens.size()) {
    const auto part = tokens.subspan(found.size() * page_size_, page_size_);
    at = child(*at, hash_(part, salt), part, salt);
    if (at == nullptr) break;
    if (at->page >= 0) {
      pages_.retain(at->page);
    } else {
      free_up(1);
      if (pages_.free() == 0) break;
      keep_in(pages_.take(), *at);
      loads_.push_back({at->page, at->slot});
    }
    found.push_back(at->page);
  }
  // A use of the copies: those of longer texts are given up before their beginnings.
  for (std::size_t i = loads_.size(); i-- > before;) {
    slots_->retain(loads_[i].slot);
    slots_->release(loads_[i].slot);
  }
}

/// The cache becomes an owner of the page.
void PrefixCache::keep_in(std::int32_t page, Node& node) {
  pages_.retain_cached(page);
  node.page = page;
  node_of(page) = &node;
  ++size_;
}

void PrefixCache::add(std::span<const std::int32_t> tokens, std::span<const std::int32_t> pages,
                      std::uint64_t salt) {
  std::size_t known = pages.size();
  while (known > 0 && node_of(pages[known - 1]) == nullptr) --known;
  Node* at = known == 0 ? &root_ : node_of(pages[known - 1]);
  for (std::size_t i = known; i < pages.size() && (i + 1) * page_size_ <= tokens.size(); ++i) {
    const auto part = tokens.subspan(i * page_size_, page_size_);
    const std::uint64_t hash = hash_(part, salt);
    Node* next = child(*at, hash, part, salt);
    if (next == nullptr) {
      auto made = std::make_unique<Node>();
      next = made.get();
      made->parent = at;
      made->salt = salt;
      made->hash = hash;
      made->tokens.assign(part.begin(), part.end());
      at->children.emplace(hash, std::move(made));
    }
    if (next->page < 0) {
      keep_in(pages[i], *next);
      if (has_host() && next->slot < 0) unsaved_.push_back(pages[i]);
      if (unsaved_.size() > nodes_.size()) unsaved_.pop_front();
    }
    at = next;
  }
}

/// A node without children, at the end of a text that begins with this one.
PrefixCache::Node* PrefixCache::last_leaf(Node* node) noexcept {
  while (!node->children.empty()) node = node->children.begin()->second.get();
  return node;
}

void PrefixCache::remove_page(Node& node) {
  if (node.page < 0) return;
  pages_.release_cached(node.page);
  node_of(std::exchange(node.page, -1)) = nullptr;
  given_up_ = true;
  --size_;
}

void PrefixCache::remove_slot(Node& node) {
  if (node.slot < 0) return;
  slots_->release_cached(node.slot);
  slot_nodes_[static_cast<std::size_t>(std::exchange(node.slot, -1))] = nullptr;
}

void PrefixCache::drop(Node& leaf) {
  remove_page(leaf);
  remove_slot(leaf);
  auto& siblings = leaf.parent->children;
  const auto [begin, end] = siblings.equal_range(leaf.hash);
  siblings.erase(
      std::find_if(begin, end, [&](const auto& each) { return each.second.get() == &leaf; }));
}

void PrefixCache::free_up(std::int32_t wanted) {
  // The oldest idle page has children where a sequence computed an equal page itself: those may be
  // younger, or in use.
  while (pages_.free() < wanted && pages_.idle() > 0) {
    Node& oldest = *node_of(pages_.oldest_idle());
    if (oldest.slot >= 0)
      remove_page(oldest);
    else
      drop(*last_leaf(&oldest));
  }
}

void PrefixCache::clear() noexcept {
  for (Node* at = last_leaf(&root_); at != &root_;) {
    Node* const parent = at->parent;
    drop(*at);
    at = last_leaf(parent);
  }
  unsaved_.clear();
  loads_.clear();
}

// ---- the host

void PrefixCache::use_host(std::int32_t slots) {
  slots_.emplace(slots);
  slot_nodes_.assign(static_cast<std::size_t>(slots), nullptr);
}

std::vector<PrefixCache::PageMove> PrefixCache::take_loads() {
  // A page may have got another owner since: no step was launched in between.
  std::erase_if(loads_, [&](const PageMove& each) {
    const Node* const node = node_of(each.page);
    return node == nullptr || node->slot != each.slot;
  });
  return std::exchange(loads_, {});
}

/// Makes so many slots free. The longest unused copies go, from the ends of their texts on, with
/// pages that only these led to.
void PrefixCache::free_slots(std::int32_t wanted) {
  while (slots_->free() < wanted) {
    Node* const oldest = slot_nodes_[static_cast<std::size_t>(slots_->oldest_idle())];
    if (oldest->page >= 0) {
      remove_slot(*oldest);
      continue;
    }
    for (Node* leaf = last_leaf(oldest); slots_->free() < wanted;) {
      Node* const parent = leaf->parent;
      const bool is_last = leaf == oldest;
      drop(*leaf);
      if (is_last) break;
      leaf = last_leaf(parent);
    }
  }
}

std::vector<PrefixCache::PageMove> PrefixCache::take_saves(std::size_t most) {
  std::vector<std::int32_t> pages;
  // The ends of texts go first: their copies are given up before those of their beginnings.
  for (; !unsaved_.empty() && pages.size() < most; unsaved_.pop_back()) {
    const Node* const node = node_of(unsaved_.back());
    if (node != nullptr && node->slot < 0 && std::ranges::count(pages, node->page) == 0)
      pages.push_back(node->page);
  }
  pages.resize(std::min(pages.size(), slot_nodes_.size()));
  free_slots(static_cast<std::int32_t>(pages.size()));
  std::vector<PageMove> made;
  for (const std::int32_t page : pages) {
    Node* const node = node_of(page);
    if (node == nullptr) continue;  // its beginning was given up
    node->slot = slots_->take();
    slots_->retain_cached(node->slot);
    slots_->release(node->slot);
    slot_nodes_[static_cast<std::size_t>(node->slot)] = node;
    made.push_back({page, node->slot});
  }
  return made;
}

}  // namespace kernwright::engine
