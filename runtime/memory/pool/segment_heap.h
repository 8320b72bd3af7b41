// A pool's bookkeeping, without a device: segments cut into blocks, and free blocks by owner.
#pragma once

#include "core/launch/launch_site.h"
#include "memory/pool/block_table.h"
#include "memory/pool/size_class.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

namespace kernwright {

/// Hands out blocks of segments allocated by others, and takes them back. Free memory belongs to a
/// stream, by its id: the stream on which it was freed may have it again at once. Memory of
/// kSettled is out of reach of all work, so every stream may have it. Freed blocks are kept whole
/// until a request finds none of its size; then neighbours are merged. Not thread-safe. A
/// std::bad_alloc leaves everything as it was.
class SegmentHeap {
 public:
  using Owner = std::uint64_t;  ///< Stream::id()
  static constexpr Owner kSettled = 0;

  enum class State : std::uint8_t {
    used,
    held,     ///< given back by its user, but not available before a capture has ended
    resting,  ///< free, not merged with its neighbours yet
    free,
  };
  class Lane;
  struct Segment;

  /// A piece of a segment. Which fields a caller may write says so.
  struct Block {
    std::uint64_t address = 0;
    std::size_t bytes = 0;      ///< a size class while in use
    std::size_t requested = 0;  ///< caller's: what its user asked for
    State state = State::free;
    Owner stream = 0;         ///< caller's: the stream it was allocated on
    LaunchSite site;          ///< caller's: where it was allocated
    std::uint64_t stamp = 0;  ///< when it was freed, as give() was told; caller's while in use
    Block* left = nullptr;    ///< neighbours in the segment
    Block* right = nullptr;
    Block* previous = nullptr;  ///< in a list of its lane
    Block* next = nullptr;
    Lane* lane = nullptr;  ///< while free
    Segment* segment = nullptr;
  };

  struct Segment {
    std::uint64_t address = 0;
    std::size_t bytes = 0;
    Block* first = nullptr;
  };

  /// A segment without memory in use; its work may touch it still.
  struct FreeSegment {
    std::uint64_t address = 0;
    std::size_t bytes = 0;
    Owner owner = kSettled;
  };

  SegmentHeap();
  ~SegmentHeap();
  SegmentHeap(const SegmentHeap&) = delete;
  SegmentHeap& operator=(const SegmentHeap&) = delete;

  /// New free memory; address and size are multiples of 256, the size is not 0.
  void add(std::uint64_t address, std::size_t bytes, Owner owner);

  /// A block of the smallest class of at least `bytes`, allowed to `owner`; null when there is
  /// none. Constant time when a block of that class was given back by the same owner.
  Block* take(std::size_t bytes, Owner owner);
  /// The same of what `donor` owns; the rest stays with the donor.
  Block* take_from(Owner donor, std::size_t bytes);
  /// Owners other than `owner` and kSettled with a block of at least `bytes`.
  std::vector<Owner> donors(std::size_t bytes, Owner owner);

  /// The block that starts at `address`, in whatever state; null when none does.
  Block* find(std::uint64_t address) const noexcept { return blocks_.find(address); }
  /// Takes a block that is used or held back, for `owner`. `stamp` orders it against settle().
  void give(Block* block, Owner owner, std::uint64_t stamp);
  /// Memory freed by `owner` up to `stamp` becomes settled. Forgets an owner without memory.
  void settle(Owner owner, std::uint64_t stamp);
  /// Owners that have, or had, free memory.
  std::vector<Owner> owners() const;
  bool owns(Owner owner) const noexcept { return find_lane(owner) != nullptr; }
  static Owner find_owner(const Block& block) noexcept;  ///< of a free block

  /// Segments of which everything is free. Merges first.
  std::vector<FreeSegment> free_segments();
  /// Forgets one of these.
  void remove(std::uint64_t segment);

  const std::map<std::uint64_t, Segment>& segments() const noexcept { return segments_; }
  std::size_t bytes() const noexcept { return bytes_; }            ///< of all segments
  std::size_t used_bytes() const noexcept { return used_bytes_; }  ///< of blocks used or held
  std::size_t used_blocks() const noexcept { return used_blocks_; }
  /// Bytes of the largest free block of any owner, or a sixteenth less where there are many.
  std::size_t largest_free() const noexcept;

 private:
  Lane& ensure_lane(Owner owner);
  Lane* find_lane(Owner owner) const noexcept;
  void merge(Lane& lane) noexcept;
  Block* absorb_neighbours(Block* block) noexcept;
  Block* cut(Block* block, SizeClass wanted);
  Block* use(Block* block) noexcept;
  Block* spare();
  void recycle(Block* block) noexcept;

  std::map<std::uint64_t, Segment> segments_;
  BlockTable<Block> blocks_;
  std::unordered_map<Owner, std::unique_ptr<Lane>> lanes_;
  Lane* latest_ = nullptr;  ///< the lane used last
  Lane* settled_ = nullptr;
  std::deque<Block> storage_;
  Block* spares_ = nullptr;  ///< blocks of storage_ that are not in use, linked by `next`
  std::size_t bytes_ = 0;
  std::size_t used_bytes_ = 0;
  std::size_t used_blocks_ = 0;
};

}  // namespace kernwright
