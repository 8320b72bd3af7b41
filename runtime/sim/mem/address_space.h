// Reserved address space cut into slots of one size per zone, with one word of state for each slot.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

namespace kernwright::sim {

/// State of a slot, packed into one word so that readers need no lock: bytes, tag and phase.
struct SlotState {
  enum Phase : std::uint8_t { never_used, live, freed };
  std::uint64_t bytes = 0;
  std::uint8_t tag = 0;  ///< the owner's, 0 to 63
  Phase phase = never_used;

  std::uint64_t pack() const noexcept {
    return bytes << 8 | std::uint64_t{tag} << 2 | std::uint64_t{phase};
  }
  static SlotState unpack(std::uint64_t word) noexcept {
    return {word >> 8, static_cast<std::uint8_t>(word >> 2 & 63), static_cast<Phase>(word & 3)};
  }
};

/// Whether a fault stops host code with accesses after a block. This takes two entries of the
/// process's memory map for each live block (Linux allows 65530), and system calls. Small blocks
/// without need of gaps lie in runs, open as a whole. Packed ones are a few bytes in shared pages:
/// take() and give_back() make no system call, and their first contents are left from earlier use.
enum class Gap : std::uint8_t { open, closed, packed };

/// A block lives at the start of a slot with at least twice its length, so the place of a block
/// follows from any address inside it by arithmetic alone. Slots are handed out fresh first and
/// then oldest-freed first; packed ones again as soon as enough others were freed since. take() and
/// give_back() need the caller's lock, find_slot() does not.
class AddressSpace {
 public:
  static constexpr std::uint64_t kLargestPacked = 32 << 10;

  /// Room for single blocks of up to `largest_block` bytes, but at most half of the process's room.
  /// If this is too little, room for a half, a quarter, ... of the largest block, down to
  /// `least_block`. Throws OutOfMemory.
  AddressSpace(std::uint64_t largest_block, std::uint64_t least_block);
  ~AddressSpace();
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;

  std::uint64_t largest_block() const noexcept { return largest_block_; }

  struct Slot {
    std::uint64_t begin = 0;  ///< host address of the block
    SlotState state;
  };
  /// The slot around host address `address`, or nothing when it lies outside. Lock-free.
  std::optional<Slot> find_slot(std::uint64_t address) const noexcept;
  /// Length of the slots around `address` where they are packed, else 0.
  std::uint64_t packed_length(std::uint64_t address) const noexcept;

  /// Host address of `bytes` fresh readable and writable bytes, zeros unless packed, or nothing.
  /// Blocks of more than kLargestPacked bytes are never packed.
  std::optional<std::uint64_t> take(std::uint64_t bytes, std::uint8_t tag, Gap gap);
  /// Ends the live block at `begin`: its memory goes back, and its slot remembers it as freed. If
  /// it may still be used (`in_use`), it stays readable and writable until reclaim().
  void give_back(std::uint64_t begin, bool in_use);
  void reclaim();
  /// Gives the live block at `begin` another tag.
  void set_tag(std::uint64_t begin, std::uint8_t tag) noexcept;

 private:
  struct Zone {
    int stride_shift = 0;  ///< log2 of the slot length
    bool packed = false;
    std::uint64_t begin = 0;  ///< host address
    std::uint64_t slots = 0;
    std::uint64_t open_end = 0;      ///< slots below this lie in open runs
    std::uint64_t fresh_in_run = 0;  ///< unused slots at the end of the last one
    std::uint64_t closed = 0;        ///< slots that have had blocks with closed gaps
    std::uint64_t first_word = 0;    ///< index of the zone's first word in words_
    std::deque<std::uint64_t> freed_closed, freed_open;  ///< slot numbers, oldest first

    bool is_open(std::uint64_t slot) const noexcept { return slot < open_end; }
    std::uint64_t untouched() const noexcept { return slots - open_end - closed; }
    std::uint64_t slot_address(std::uint64_t slot) const noexcept {
      return begin + (slot << stride_shift);
    }
  };
  void add_zone(std::uint64_t unit, std::uint64_t bytes, Zone zone, std::uint64_t& words);
  bool reserve(std::uint64_t unit, std::uint64_t largest_block, bool leave_as_much);
  std::atomic_ref<std::uint64_t> word(const Zone& zone, std::uint64_t slot) const noexcept;
  Zone& find_zone(std::uint64_t begin) noexcept {
    return zones_[unit_zones_[(begin - base_) >> unit_shift_]];
  }
  const Zone& find_zone(std::uint64_t begin) const noexcept {
    return zones_[unit_zones_[(begin - base_) >> unit_shift_]];
  }
  void release(std::uint64_t begin, std::uint64_t bytes);
  std::optional<std::uint64_t> take_closed(Zone& zone, std::uint64_t bytes);
  std::optional<std::uint64_t> take_open(Zone& zone);

  std::uint64_t largest_block_ = 0;
  int unit_shift_ = 0;                   ///< log2 of the zones' common length unit
  std::uint64_t base_ = 0, length_ = 0;  ///< the reservation, cut to whole units
  void* mapping_ = nullptr;
  std::size_t mapping_bytes_ = 0;
  std::uint64_t* words_ = nullptr;
  std::size_t words_bytes_ = 0;
  std::vector<Zone> zones_;
  std::vector<std::uint8_t> unit_zones_;
  std::vector<Slot> pending_;  ///< given back while in use, with closed gaps
};

}  // namespace kernwright::sim
