// Global memory of one simulated device.
#include "sim/mem/memory.h"

#include "base/counted.h"
#include "base/format.h"
#include "sim/mem/address_space.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <shared_mutex>

namespace kernwright::sim {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kNullPage = 64 << 10;
constexpr std::uint64_t kFarAway = std::uint64_t{64} << 30;  // no slip of an index

bool on_host(AllocationKind kind) {
  return kind == AllocationKind::host || kind == AllocationKind::managed;
}

bool counts(AllocationKind kind) { return kind != AllocationKind::host; }

std::uint64_t pages(std::uint64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

/// Device address of the block at host address `begin`.
std::uint64_t tagged(std::uint64_t begin, AllocationKind kind) {
  return on_host(kind) ? begin : begin | kGlobalTag;
}

std::string noun(const Allocation& allocation) {
  const std::string& label = allocation.label;
  std::string what = "the allocation";
  if (allocation.kind == AllocationKind::constant) what = "the constant variable";
  if (allocation.kind == AllocationKind::module_variable) what = "the variable";
  if (allocation.kind == AllocationKind::heap) what = "the device heap";
  if (allocation.kind == AllocationKind::host) what = "the host memory";
  if (!label.empty()) what += " \"" + label + "\"";
  return format("{} of {} at {:#x}", what,
                counted(allocation.range.end - allocation.range.begin, "byte"),
                allocation.range.begin);
}

std::string place(const Allocation& allocation, std::uint64_t address, std::uint64_t size) {
  const AddressRange& range = allocation.range;
  if (range.contains(address, size)) return "inside " + noun(allocation);
  if (address >= range.end) {
    const std::uint64_t gap = address - range.end;
    return gap == 0 ? "just past the end of " + noun(allocation)
                    : format("{} past the end of {}", counted(gap, "byte"), noun(allocation));
  }
  if (address >= range.begin) {
    return format("the last {} of the {} bytes lie past the end of {}", address + size - range.end,
                  size, noun(allocation));
  }
  return format("{} before {}", counted(range.begin - address, "byte"), noun(allocation));
}

std::uint64_t distance(const AddressRange& range, std::uint64_t address) {
  if (address < range.begin) return range.begin - address;
  return address < range.end ? 0 : address - range.end;
}

}  // namespace

struct Memory::State {
  State(std::uint64_t bytes, std::uint64_t least)
      : space(std::max(pages(bytes), kPage), std::max(pages(least), kPage)) {}

  std::atomic<std::uint64_t> used{0};
  mutable std::mutex mutex;  // guards blocks and the changing side of space
  AddressSpace space;
  const std::uint64_t capacity = space.largest_block();
  std::map<std::uint64_t, Allocation> blocks;      // by device address, adopted host memory too
  mutable std::shared_mutex adopted_mutex;         // taken after mutex where both are held
  std::map<std::uint64_t, std::uint64_t> adopted;  // begin -> end
  std::atomic<std::size_t> adopted_count{0};
  using Neighbours = std::vector<const Memory*>;
  std::atomic<const Neighbours*> neighbours{nullptr};
  std::vector<std::unique_ptr<const Neighbours>> all_neighbours;  // readers may hold an old list

  std::string describe_local(std::uint64_t address, std::uint64_t size, bool* freed) const;
  bool free_packed(std::uint64_t address);
  std::optional<Allocation> nearest_packed(std::uint64_t address) const;

  AddressRange find_adopted(std::uint64_t address) const {
    const std::shared_lock lock(adopted_mutex);
    auto next = adopted.upper_bound(address);
    if (next == adopted.begin()) return {};
    --next;
    return address < next->second ? AddressRange{next->first, next->second} : AddressRange{};
  }
};

Memory::Memory(std::uint64_t capacity_bytes, std::uint64_t least_bytes)
    : state_(std::make_unique<State>(capacity_bytes, least_bytes)) {}
Memory::~Memory() = default;

std::optional<std::uint64_t> Memory::allocate(std::uint64_t bytes, AllocationKind kind,
                                              std::string label) {
  State& s = *state_;
  if (bytes == 0 || bytes > s.capacity) return std::nullopt;
  const std::uint64_t cost = counts(kind) ? pages(bytes) : 0;
  const std::lock_guard lock(s.mutex);
  if (cost > s.capacity - s.used.load()) return std::nullopt;
  const Gap gap = on_host(kind) ? Gap::closed : Gap::open;
  const auto begin = s.space.take(bytes, static_cast<std::uint8_t>(kind), gap);
  if (!begin) return std::nullopt;
  const std::uint64_t address = tagged(*begin, kind);
  s.blocks.emplace(address, Allocation{{address, address + bytes}, kind, std::move(label)});
  s.used += cost;
  return address;
}

std::optional<std::uint64_t> Memory::allocate_packed(std::uint64_t bytes) {
  static_assert(kLargestPacked == AddressSpace::kLargestPacked);
  State& s = *state_;
  if (bytes > kLargestPacked) return std::nullopt;
  constexpr auto kTag = static_cast<std::uint8_t>(AllocationKind::heap);
  const std::lock_guard lock(s.mutex);
  if (s.capacity - s.used.load() < 2 * kLargestPacked) return std::nullopt;
  const auto begin = s.space.take(bytes, kTag, Gap::packed);
  if (!begin) return std::nullopt;
  const std::uint64_t length = s.space.packed_length(*begin);
  if (length == 0) {  // there are too many
    s.space.give_back(*begin, true);
    return std::nullopt;
  }
  s.used += length;
  return tagged(*begin, AllocationKind::heap);
}

bool Memory::State::free_packed(std::uint64_t address) {
  const auto slot = space.find_slot(address & ~kGlobalTag);
  const bool is_block = slot && slot->state.phase == SlotState::live &&
                        tagged(slot->begin, AllocationKind::heap) == address;
  if (!is_block) return false;
  used -= space.packed_length(slot->begin);
  space.give_back(slot->begin, true);
  return true;
}

bool Memory::free(std::uint64_t address) {
  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  if (s.space.packed_length(address & ~kGlobalTag) != 0) {
    if (!s.free_packed(address)) return false;
    expire_cached_ranges();
    return true;
  }
  const auto block = s.blocks.find(address);
  if (block == s.blocks.end()) return false;
  const Allocation& allocation = block->second;
  const auto slot = s.space.find_slot(address & ~kGlobalTag);
  if (!slot) return false;  // adopted host memory
  if (counts(allocation.kind)) s.used -= pages(allocation.range.end - allocation.range.begin);
  expire_cached_ranges();
  s.space.give_back(slot->begin, allocation.kind == AllocationKind::heap);
  s.blocks.erase(block);
  return true;
}

bool Memory::set_read_only(std::uint64_t address, bool is_read_only) {
  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  const auto block = s.blocks.find(address);
  if (block == s.blocks.end() || block->second.kind != AllocationKind::device) return false;
  const auto kind = is_read_only ? AllocationKind::read_only : AllocationKind::device;
  s.space.set_tag(address & ~kGlobalTag, static_cast<std::uint8_t>(kind));
  expire_cached_ranges();
  return true;
}

void Memory::reclaim() {
  const std::lock_guard lock(state_->mutex);
  state_->space.reclaim();
}

bool Memory::adopt_host(std::uint64_t address, std::uint64_t bytes) {
  State& s = *state_;
  const std::uint64_t end = address + bytes;
  if (bytes == 0 || end < address || (end & kWindowMask) != 0) return false;
  const std::lock_guard lock(s.mutex);
  auto next = s.blocks.lower_bound(end);
  if (next != s.blocks.begin() && std::prev(next)->second.range.end > address) return false;
  s.blocks.emplace(address, Allocation{{address, end}, AllocationKind::host, "registered"});
  const std::unique_lock adopted_lock(s.adopted_mutex);
  s.adopted.emplace(address, end);
  ++s.adopted_count;
  return true;
}

bool Memory::release_host(std::uint64_t address) {
  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  const std::unique_lock adopted_lock(s.adopted_mutex);
  if (s.adopted.erase(address) == 0) return false;
  --s.adopted_count;
  s.blocks.erase(address);
  expire_cached_ranges();
  return true;
}

void Memory::set_neighbours(std::vector<const Memory*> neighbours) {
  const std::lock_guard lock(state_->mutex);
  state_->all_neighbours.push_back(
      std::make_unique<const State::Neighbours>(std::move(neighbours)));
  state_->neighbours.store(state_->all_neighbours.back().get(), std::memory_order_release);
  expire_cached_ranges();
}

bool Memory::covers(std::uint64_t address) const noexcept {
  return state_->space.find_slot(address & ~kGlobalTag).has_value();
}

AddressRange Memory::find(std::uint64_t address, bool* writable) const noexcept {
  const AddressRange local = search(address, writable);
  const auto* neighbours = state_->neighbours.load(std::memory_order_acquire);
  if (local.end != 0 || neighbours == nullptr) return local;
  for (const Memory* neighbour : *neighbours) {
    const AddressRange range = neighbour->search(address, writable);
    if (range.end != 0) return range;
  }
  return {};
}

AddressRange Memory::search(std::uint64_t address, bool* writable) const noexcept {
  const State& s = *state_;
  if (writable != nullptr) *writable = true;
  const auto slot = s.space.find_slot(address & ~kGlobalTag);
  if (!slot) return s.adopted_count.load() == 0 ? AddressRange{} : s.find_adopted(address);
  if (slot->state.phase != SlotState::live) return {};
  const auto kind = static_cast<AllocationKind>(slot->state.tag);
  const std::uint64_t begin = tagged(slot->begin, kind);
  const AddressRange range{begin, begin + slot->state.bytes};
  if (address < range.begin || address >= range.end) return {};
  if (writable != nullptr) {
    *writable = kind != AllocationKind::constant && kind != AllocationKind::read_only;
  }
  return range;
}

bool Memory::is_constant(std::uint64_t address) const noexcept {
  const auto slot = state_->space.find_slot(address & ~kGlobalTag);
  return slot && slot->state.phase == SlotState::live && search(address).end != 0 &&
         static_cast<AllocationKind>(slot->state.tag) == AllocationKind::constant;
}

std::optional<Allocation> Memory::lookup(std::uint64_t address) const {
  const std::lock_guard lock(state_->mutex);
  auto next = state_->blocks.upper_bound(address);
  if (next == state_->blocks.begin()) return std::nullopt;
  const Allocation& allocation = std::prev(next)->second;
  if (address >= allocation.range.end) return std::nullopt;
  return allocation;
}

std::string Memory::describe(std::uint64_t address, std::uint64_t size, bool* freed) const {
  if (freed != nullptr) *freed = false;
  if (address == 0) return "a null pointer";
  if (address < kNullPage) return format("a null pointer plus {} bytes", address);
  const bool untagged = (address & kWindowMask) == 0;
  const auto* neighbours = state_->neighbours.load(std::memory_order_acquire);
  if (neighbours != nullptr && !covers(address)) {
    for (const Memory* neighbour : *neighbours) {
      if (untagged || neighbour->covers(address)) {
        return neighbour->state_->describe_local(address, size, freed);
      }
    }
  }
  return state_->describe_local(address, size, freed);
}

/// The nearest live block: of the slot at `address`, the one before it and the one behind it. An
/// address in front of the first slot has none.
std::optional<Allocation> Memory::State::nearest_packed(std::uint64_t address) const {
  const std::uint64_t host = address & ~kGlobalTag;
  std::uint64_t length = space.packed_length(host);
  if (length == 0) length = space.packed_length(host + 2 * kLargestPacked);
  std::optional<Allocation> nearest;
  for (const std::uint64_t at : {host, host - length, host + length}) {
    const auto slot = space.find_slot(at);
    if (length == 0 || !slot || slot->state.phase != SlotState::live) continue;
    if (space.packed_length(at) != length) continue;
    const std::uint64_t begin = tagged(slot->begin, AllocationKind::heap);
    const AddressRange range{begin, begin + slot->state.bytes};
    if (nearest && distance(nearest->range, address) <= distance(range, address)) continue;
    nearest = Allocation{range, AllocationKind::heap, "device malloc"};
  }
  return nearest;
}

std::string Memory::State::describe_local(std::uint64_t address, std::uint64_t size,
                                          bool* freed) const {
  const auto slot = space.find_slot(address & ~kGlobalTag);
  if (slot && slot->state.phase == SlotState::freed &&
      address <
          tagged(slot->begin, static_cast<AllocationKind>(slot->state.tag)) + slot->state.bytes) {
    if (freed != nullptr) *freed = true;
    return format("inside an allocation of {} at {:#x} that was freed",
                  counted(slot->state.bytes, "byte"),
                  tagged(slot->begin, static_cast<AllocationKind>(slot->state.tag)));
  }
  if (const auto block = nearest_packed(address)) return place(*block, address, size);
  const std::lock_guard lock(mutex);
  const auto next = blocks.upper_bound(address);
  const Allocation* nearest = nullptr;
  if (next != blocks.end()) nearest = &next->second;
  if (next != blocks.begin()) {
    const Allocation& before = std::prev(next)->second;
    if (nearest == nullptr || distance(before.range, address) <= distance(nearest->range, address))
      nearest = &before;
  }
  const bool untagged = (address & kWindowMask) == 0;
  if (nearest != nullptr && untagged == on_host(nearest->kind) &&
      distance(nearest->range, address) <= kFarAway) {
    return place(*nearest, address, size);
  }
  if (untagged) return "a host address that the device does not know; it needs device memory there";
  return "far from every allocation of the device";
}

std::uint64_t Memory::used() const noexcept { return state_->used.load(); }
std::uint64_t Memory::capacity() const noexcept { return state_->capacity; }

}  // namespace kernwright::sim
