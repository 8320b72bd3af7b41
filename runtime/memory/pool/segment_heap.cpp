// Cutting and merging blocks, and finding a free one by size class.
#include "memory/pool/segment_heap.h"

#include <algorithm>
#include <bit>

namespace kernwright {
namespace {

using Block = SegmentHeap::Block;

/// Lists of blocks by size class, and which of them are not empty.
class Bins {
 public:
  void push(Block* block, unsigned index) noexcept {
    Block*& head = heads_[index];
    block->previous = nullptr;
    block->next = head;
    if (head != nullptr) head->previous = block;
    head = block;
    filled_[index / 64] |= std::uint64_t{1} << (index % 64);
  }

  void remove(Block* block, unsigned index) noexcept {
    if (block->previous != nullptr) {
      block->previous->next = block->next;
    } else {
      heads_[index] = block->next;
      if (block->next == nullptr) filled_[index / 64] &= ~(std::uint64_t{1} << (index % 64));
    }
    if (block->next != nullptr) block->next->previous = block->previous;
  }

  Block* head(unsigned index) const noexcept { return heads_[index]; }

  /// The first block of the smallest class from `index` on, or null.
  Block* first_from(unsigned index) const noexcept {
    std::size_t word = index / 64;
    if (word >= filled_.size()) return nullptr;
    std::uint64_t bits = filled_[word] & (~std::uint64_t{0} << (index % 64));
    while (bits == 0) {
      if (++word == filled_.size()) return nullptr;
      bits = filled_[word];
    }
    return heads_[word * 64 + static_cast<std::size_t>(std::countr_zero(bits))];
  }

  /// A block of the largest class, or null.
  Block* last() const noexcept {
    for (std::size_t word = filled_.size(); word-- > 0;) {
      if (filled_[word] == 0) continue;
      return heads_[word * 64 + 63 - static_cast<std::size_t>(std::countl_zero(filled_[word]))];
    }
    return nullptr;
  }

 private:
  std::array<Block*, SizeClass::kCount> heads_{};
  std::array<std::uint64_t, (SizeClass::kCount + 63) / 64> filled_{};
};

unsigned block_bin(const Block* block) noexcept {
  return SizeClass::served_by(block->bytes).index();
}

}  // namespace

/// The blocks available to one owner at once.
class SegmentHeap::Lane {
 public:
  explicit Lane(Owner lane_owner) : owner(lane_owner) {}
  bool empty() const noexcept { return resting.last() == nullptr && free.last() == nullptr; }

  const Owner owner;
  Bins resting;  ///< blocks whose size is exactly a class
  Bins free;
};

SegmentHeap::SegmentHeap() {
  settled_ = &ensure_lane(kSettled);
  storage_.emplace_back();
  recycle(&storage_.back());
}

SegmentHeap::~SegmentHeap() = default;

SegmentHeap::Lane* SegmentHeap::find_lane(Owner owner) const noexcept {
  if (latest_ != nullptr && latest_->owner == owner) return latest_;
  const auto found = lanes_.find(owner);
  return found != lanes_.end() ? found->second.get() : nullptr;
}

SegmentHeap::Lane& SegmentHeap::ensure_lane(Owner owner) {
  Lane* lane = find_lane(owner);
  if (lane == nullptr) {
    lane = lanes_.emplace(owner, std::make_unique<Lane>(owner)).first->second.get();
  }
  if (owner != kSettled) latest_ = lane;
  return *lane;
}

/// A block that is in no list; recycle() makes it available again.
SegmentHeap::Block* SegmentHeap::spare() {
  blocks_.reserve(1);
  if (spares_ == nullptr) {
    storage_.emplace_back();
    return &storage_.back();
  }
  Block* const block = spares_;
  spares_ = block->next;
  *block = Block{};
  return block;
}

void SegmentHeap::recycle(Block* block) noexcept {
  block->address = 0;
  block->next = spares_;
  spares_ = block;
}

void SegmentHeap::add(std::uint64_t address, std::size_t bytes, Owner owner) {
  Lane& lane = ensure_lane(owner);
  Block* const block = spare();
  Segment* segment = nullptr;
  try {
    segment = &segments_.emplace(address, Segment{address, bytes, block}).first->second;
  } catch (...) {
    recycle(block);
    throw;
  }
  block->address = address;
  block->bytes = bytes;
  block->segment = segment;
  block->lane = &lane;
  blocks_.insert(block);
  lane.free.push(block, block_bin(block));
  bytes_ += bytes;
}

SegmentHeap::Block* SegmentHeap::use(Block* block) noexcept {
  block->state = State::used;
  block->lane = nullptr;
  used_bytes_ += block->bytes;
  ++used_blocks_;
  return block;
}

/// Takes `block`, which is free and large enough, out of its bin; the rest stays in its lane.
SegmentHeap::Block* SegmentHeap::cut(Block* block, SizeClass wanted) {
  const std::size_t rest = block->bytes - wanted.bytes();
  Block* const right = rest != 0 ? spare() : nullptr;
  Lane& lane = *block->lane;
  lane.free.remove(block, block_bin(block));
  if (right != nullptr) {
    block->bytes = wanted.bytes();
    right->address = block->address + block->bytes;
    right->bytes = rest;
    right->segment = block->segment;
    right->stamp = block->stamp;
    right->lane = &lane;
    right->left = block;
    right->right = block->right;
    if (right->right != nullptr) right->right->left = right;
    block->right = right;
    blocks_.insert(right);
    lane.free.push(right, block_bin(right));
  }
  return use(block);
}

SegmentHeap::Block* SegmentHeap::take(std::size_t bytes, Owner owner) {
  const SizeClass wanted = SizeClass::holding(bytes);
  Lane& lane = ensure_lane(owner);
  if (Block* const block = lane.resting.head(wanted.index())) {
    lane.resting.remove(block, wanted.index());
    return use(block);
  }
  merge(lane);
  Block* found = lane.free.first_from(wanted.index());
  if (found == nullptr && owner != kSettled) {
    merge(*settled_);
    found = settled_->free.first_from(wanted.index());
  }
  return found != nullptr ? cut(found, wanted) : nullptr;
}

SegmentHeap::Block* SegmentHeap::take_from(Owner donor, std::size_t bytes) {
  Lane* const lane = find_lane(donor);
  if (lane == nullptr) return nullptr;
  const SizeClass wanted = SizeClass::holding(bytes);
  merge(*lane);
  Block* const found = lane->free.first_from(wanted.index());
  return found != nullptr ? cut(found, wanted) : nullptr;
}

std::vector<SegmentHeap::Owner> SegmentHeap::donors(std::size_t bytes, Owner owner) {
  const unsigned wanted = SizeClass::holding(bytes).index();
  std::vector<Owner> found;
  for (const auto& [other, lane] : lanes_) {
    if (other == owner || other == kSettled) continue;
    merge(*lane);
    if (lane->free.first_from(wanted) != nullptr) found.push_back(other);
  }
  return found;
}

void SegmentHeap::give(Block* block, Owner owner, std::uint64_t stamp) {
  Lane& lane = ensure_lane(owner);
  block->state = State::resting;
  block->stamp = stamp;
  block->lane = &lane;
  lane.resting.push(block, block_bin(block));
  used_bytes_ -= block->bytes;
  --used_blocks_;
}

/// Joins a block outside all lists with free neighbours allowed to its lane.
SegmentHeap::Block* SegmentHeap::absorb_neighbours(Block* block) noexcept {
  const auto joins = [&](const Block* other) {
    return other != nullptr && other->state == State::free &&
           (other->lane == block->lane || other->lane == settled_);
  };
  const auto drop = [&](Block* kept, Block* gone) {
    kept->bytes += gone->bytes;
    kept->right = gone->right;
    if (kept->right != nullptr) kept->right->left = kept;
    kept->stamp = std::max(kept->stamp, gone->stamp);
    blocks_.erase(gone->address);
    recycle(gone);
  };
  while (joins(block->right)) {
    Block* const right = block->right;
    right->lane->free.remove(right, block_bin(right));
    drop(block, right);
  }
  while (joins(block->left)) {
    Block* const left = block->left;
    left->lane->free.remove(left, block_bin(left));
    left->lane = block->lane;
    drop(left, block);
    block = left;
  }
  return block;
}

void SegmentHeap::merge(Lane& lane) noexcept {
  while (Block* const block = lane.resting.last()) {
    lane.resting.remove(block, block_bin(block));
    Block* const whole = absorb_neighbours(block);
    whole->state = State::free;
    lane.free.push(whole, block_bin(whole));
  }
}

void SegmentHeap::settle(Owner owner, std::uint64_t stamp) {
  Lane* const lane = find_lane(owner);
  if (lane == nullptr || lane == settled_) return;
  merge(*lane);
  std::vector<Block*> moving;
  for (unsigned index = 0; index < SizeClass::kCount; ++index) {
    for (Block* block = lane->free.head(index); block != nullptr; block = block->next) {
      if (block->stamp <= stamp) moving.push_back(block);
    }
  }
  for (Block* const block : moving) lane->free.remove(block, block_bin(block));
  for (Block* const block : moving) {
    block->lane = settled_;
    block->state = State::resting;
  }
  for (Block* const block : moving) {
    // NOTE: an earlier one may have absorbed nothing of this list yet: they are not `free`.
    Block* const whole = absorb_neighbours(block);
    whole->state = State::free;
    settled_->free.push(whole, block_bin(whole));
  }
  if (!lane->empty()) return;
  if (latest_ == lane) latest_ = nullptr;
  lanes_.erase(owner);
}

std::vector<SegmentHeap::Owner> SegmentHeap::owners() const {
  std::vector<Owner> list;
  for (const auto& [owner, lane] : lanes_) {
    if (owner != kSettled) list.push_back(owner);
  }
  return list;
}

SegmentHeap::Owner SegmentHeap::find_owner(const Block& block) noexcept {
  return block.lane->owner;
}

std::vector<SegmentHeap::FreeSegment> SegmentHeap::free_segments() {
  for (const auto& [owner, lane] : lanes_) merge(*lane);
  std::vector<FreeSegment> list;
  for (const auto& [address, segment] : segments_) {
    const Block* const block = segment.first;
    if (block->state != State::free || block->bytes != segment.bytes) continue;
    list.push_back({address, segment.bytes, block->lane->owner});
  }
  return list;
}

void SegmentHeap::remove(std::uint64_t segment) {
  const auto found = segments_.find(segment);
  Block* const block = found->second.first;
  block->lane->free.remove(block, block_bin(block));
  blocks_.erase(block->address);
  bytes_ -= block->bytes;
  recycle(block);
  segments_.erase(found);
}

std::size_t SegmentHeap::largest_free() const noexcept {
  constexpr int kEnough = 32;  // blocks of one class differ by a sixteenth at most
  std::size_t largest = 0;
  for (const auto& [owner, lane] : lanes_) {
    for (const Bins* bins : {&lane->resting, &lane->free}) {
      int seen = 0;
      for (const Block* block = bins->last(); block != nullptr && seen < kEnough; ++seen) {
        largest = std::max(largest, block->bytes);
        block = block->next;
      }
    }
  }
  return largest;
}

}  // namespace kernwright
