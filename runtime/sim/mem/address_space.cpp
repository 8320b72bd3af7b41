// Reserved address space cut into slots of one size per zone.
#include "sim/mem/address_space.h"

#include "base/errors.h"
#include "base/format.h"
#include "base/math.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

namespace kernwright::sim {
namespace {

constexpr int kPageShift = 12;
constexpr std::uint64_t kHugePage = std::uint64_t{2} << 20;
constexpr std::uint64_t kUnit = std::uint64_t{4} << 30;
constexpr std::uint64_t kSmallestUnit = std::uint64_t{16} << 20;
constexpr std::uint64_t kLeastSlots = 4;
/// Size of a run; blocks of up to half of it may have open gaps. Neighbouring runs are one entry of
/// the process's map.
constexpr std::uint64_t kRunBytes = std::uint64_t{1} << 20;
/// log2 of the packed slots' lengths.
constexpr std::array<int, 6> kPackedShifts{6, 8, 10, 12, 14, 16};
static_assert(AddressSpace::kLargestPacked == 1u << (kPackedShifts.back() - 1));
/// Room for the packed slots of one length: more would take much memory for their states.
constexpr std::uint64_t kPackedBytes = std::uint64_t{256} << 20;
/// So many packed slots of one length stay freed before the oldest is used again.
std::size_t quarantine(int stride_shift) {
  return std::min<std::size_t>(4096, (std::size_t{16} << 20) >> stride_shift);
}
constexpr int kReservation = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

/// 0 where a slot is longer than a run.
std::uint64_t slots_per_run(int stride_shift) { return kRunBytes >> stride_shift; }

std::uint64_t page_round(std::uint64_t bytes) { return round_up(bytes, 1u << kPageShift); }

void* pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }

bool commit(std::uint64_t begin, std::uint64_t bytes) {
  const std::uint64_t length = page_round(bytes);
  if (mprotect(pointer(begin), length, PROT_READ | PROT_WRITE) != 0) return false;
  if (length >= 2 * kHugePage) madvise(pointer(begin), length, MADV_HUGEPAGE);
  return true;
}

void decommit(std::uint64_t begin, std::uint64_t bytes) {
  const std::uint64_t length = page_round(bytes);
  const void* fresh = mmap(pointer(begin), length, PROT_NONE, kReservation | MAP_FIXED, -1, 0);
  if (fresh != MAP_FAILED) return;
  // The process's map is full: at least give the pages back and close the door.
  madvise(pointer(begin), length, MADV_DONTNEED);
  mprotect(pointer(begin), length, PROT_NONE);
}

/// A run of slots. Huge pages would make the first block of one cost as much as all.
bool open_run(std::uint64_t begin, std::uint64_t bytes) {
  if (mprotect(pointer(begin), bytes, PROT_READ | PROT_WRITE) != 0) return false;
  madvise(pointer(begin), bytes, MADV_NOHUGEPAGE);
  return true;
}

}  // namespace

AddressSpace::AddressSpace(std::uint64_t largest_block, std::uint64_t least_block) {
  const bool leave_as_much = least_block < largest_block;
  std::uint64_t bytes = largest_block;
  for (;; bytes /= 2) {
    // The larger the units are, the more slots small blocks have.
    for (std::uint64_t unit = kUnit; unit >= kSmallestUnit; unit /= 4)
      if (reserve(unit, bytes, leave_as_much)) return;
    if (bytes / 2 < least_block) break;
  }
  throw OutOfMemory(
      format("the simulated device cannot reserve address space for {} bytes of memory; raise the "
             "process's address space limit (ulimit -v) or set KERNWRIGHT_SIM_MEMORY lower",
             bytes),
      bytes, 0, 0, 0);
}

/// Adds a zone of `bytes` in whole units; `words` counts the states of all slots.
void AddressSpace::add_zone(std::uint64_t unit, std::uint64_t bytes, Zone zone,
                            std::uint64_t& words) {
  const std::uint64_t units = (bytes + unit - 1) / unit;
  zone.slots = bytes >> zone.stride_shift;
  zone.begin = length_;
  zone.first_word = words;
  words += zone.slots;
  length_ += units * unit;
  unit_zones_.insert(unit_zones_.end(), units, static_cast<std::uint8_t>(zones_.size()));
  zones_.push_back(std::move(zone));
}

bool AddressSpace::reserve(std::uint64_t unit, std::uint64_t largest_block, bool leave_as_much) {
  const int largest_class =
      std::max(kPageShift, static_cast<int>(std::bit_width(largest_block - 1)));
  unit_shift_ = std::countr_zero(unit);
  std::uint64_t words = 0;
  for (const int shift : kPackedShifts) {
    Zone zone;
    zone.stride_shift = shift;
    zone.packed = true;
    add_zone(unit, std::min(unit, kPackedBytes), std::move(zone), words);
  }
  for (int size_class = kPageShift; size_class <= largest_class; ++size_class) {
    Zone zone;
    zone.stride_shift = size_class + 1;
    add_zone(unit, round_up(kLeastSlots << zone.stride_shift, unit), std::move(zone), words);
  }
  mapping_bytes_ = length_ + kHugePage;
  mapping_ = mmap(nullptr, mapping_bytes_, PROT_NONE, kReservation, -1, 0);
  words_bytes_ = words * sizeof(std::uint64_t);
  void* words_mapping = mmap(nullptr, words_bytes_, PROT_READ | PROT_WRITE, kReservation, -1, 0);
  bool fits = mapping_ != MAP_FAILED && words_mapping != MAP_FAILED;
  if (fits && leave_as_much) {
    void* const rest = mmap(nullptr, mapping_bytes_, PROT_NONE, kReservation, -1, 0);
    fits = rest != MAP_FAILED;
    if (fits) munmap(rest, mapping_bytes_);
  }
  if (!fits) {
    if (mapping_ != MAP_FAILED) munmap(mapping_, mapping_bytes_);
    if (words_mapping != MAP_FAILED) munmap(words_mapping, words_bytes_);
    zones_.clear();
    unit_zones_.clear();
    length_ = 0;
    return false;
  }
  largest_block_ = largest_block;
  words_ = static_cast<std::uint64_t*>(words_mapping);
  base_ = round_up(reinterpret_cast<std::uint64_t>(mapping_), kHugePage);
  for (Zone& zone : zones_) zone.begin += base_;
  return true;
}

AddressSpace::~AddressSpace() {
  munmap(mapping_, mapping_bytes_);
  munmap(words_, words_bytes_);
}

std::atomic_ref<std::uint64_t> AddressSpace::word(const Zone& zone,
                                                  std::uint64_t slot) const noexcept {
  return std::atomic_ref<std::uint64_t>(words_[zone.first_word + slot]);
}

std::optional<AddressSpace::Slot> AddressSpace::find_slot(std::uint64_t address) const noexcept {
  const std::uint64_t offset = address - base_;
  if (offset >= length_) return std::nullopt;
  const Zone& zone = zones_[unit_zones_[offset >> unit_shift_]];
  const std::uint64_t slot = (address - zone.begin) >> zone.stride_shift;
  if (slot >= zone.slots) return std::nullopt;
  const std::uint64_t packed = word(zone, slot).load(std::memory_order_acquire);
  return Slot{zone.slot_address(slot), SlotState::unpack(packed)};
}

std::uint64_t AddressSpace::packed_length(std::uint64_t address) const noexcept {
  if (address - base_ >= length_) return 0;
  const Zone& zone = find_zone(address);
  return zone.packed ? std::uint64_t{1} << zone.stride_shift : 0;
}

std::optional<std::uint64_t> AddressSpace::take(std::uint64_t bytes, std::uint8_t tag, Gap gap) {
  if (bytes == 0) return std::nullopt;
  for (Zone& zone : zones_) {
    if (bytes > std::uint64_t{1} << (zone.stride_shift - 1)) continue;
    if (zone.packed && gap != Gap::packed) continue;
    std::optional<std::uint64_t> slot;
    if (gap != Gap::closed) slot = take_open(zone);
    if (!slot && !zone.packed) slot = take_closed(zone, bytes);
    if (!slot) continue;
    word(zone, *slot)
        .store(SlotState{bytes, tag, SlotState::live}.pack(), std::memory_order_release);
    return zone.slot_address(*slot);
  }
  return std::nullopt;
}

std::optional<std::uint64_t> AddressSpace::take_closed(Zone& zone, std::uint64_t bytes) {
  const bool is_fresh = zone.untouched() != 0;
  if (!is_fresh && zone.freed_closed.empty()) return std::nullopt;
  // From the end where runs grow from the beginning. Else upwards: memory far behind a block was
  // never used.
  const std::uint64_t fresh =
      slots_per_run(zone.stride_shift) != 0 ? zone.slots - 1 - zone.closed : zone.closed;
  const std::uint64_t slot = is_fresh ? fresh : zone.freed_closed.front();
  if (!commit(zone.slot_address(slot), bytes)) return std::nullopt;
  if (is_fresh) {
    ++zone.closed;
  } else {
    zone.freed_closed.pop_front();
  }
  return slot;
}

std::optional<std::uint64_t> AddressSpace::take_open(Zone& zone) {
  const std::uint64_t run = slots_per_run(zone.stride_shift);
  const bool reuses = zone.packed && zone.freed_open.size() > quarantine(zone.stride_shift);
  if (!reuses && zone.fresh_in_run == 0 && run != 0 && zone.untouched() >= run &&
      open_run(zone.slot_address(zone.open_end), kRunBytes)) {
    zone.open_end += run;
    zone.fresh_in_run = run;
  }
  if (!reuses && zone.fresh_in_run != 0) return zone.open_end - zone.fresh_in_run--;
  if (zone.freed_open.empty()) return std::nullopt;
  const std::uint64_t slot = zone.freed_open.front();
  zone.freed_open.pop_front();
  return slot;
}

void AddressSpace::set_tag(std::uint64_t begin, std::uint8_t tag) noexcept {
  const Zone& zone = find_zone(begin);
  const auto place = word(zone, (begin - zone.begin) >> zone.stride_shift);
  SlotState state = SlotState::unpack(place.load(std::memory_order_relaxed));
  state.tag = tag;
  place.store(state.pack(), std::memory_order_release);
}

void AddressSpace::give_back(std::uint64_t begin, bool in_use) {
  Zone& zone = find_zone(begin);
  const std::uint64_t slot = (begin - zone.begin) >> zone.stride_shift;
  SlotState state = SlotState::unpack(word(zone, slot).load(std::memory_order_relaxed));
  state.phase = SlotState::freed;
  word(zone, slot).store(state.pack(), std::memory_order_release);
  if (in_use && !zone.is_open(slot)) {
    pending_.push_back({begin, state});
  } else {
    release(begin, state.bytes);
  }
}

void AddressSpace::release(std::uint64_t begin, std::uint64_t bytes) {
  Zone& zone = find_zone(begin);
  const std::uint64_t slot = (begin - zone.begin) >> zone.stride_shift;
  if (zone.packed) {
    zone.freed_open.push_back(slot);
  } else if (zone.is_open(slot)) {
    madvise(pointer(begin), page_round(bytes), MADV_DONTNEED);
    zone.freed_open.push_back(slot);
  } else {
    decommit(begin, bytes);
    zone.freed_closed.push_back(slot);
  }
}

void AddressSpace::reclaim() {
  for (const Slot& slot : pending_) release(slot.begin, slot.state.bytes);
  pending_.clear();
}

}  // namespace kernwright::sim
