// Regions of shadow memory, made lazily.
#include "sim/check/history/global_shadow.h"

#include "sim/check/history/poison.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

namespace kernwright::sim {
namespace {

constexpr std::size_t kGranuleTable = kRegionGranules * sizeof(Granule);
constexpr std::size_t kShadowBytes = kGranuleTable + 2 * kRegionWords * sizeof(Shadow);
constexpr std::size_t kExactBytes = 8 * kRegionWords * sizeof(Shadow);
constexpr std::size_t kPoisonWords = kRegionBytes / 64 + 1;

}  // namespace

void* lazy_zeros(std::size_t bytes) {
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  return memory;
}

GlobalRegion::GlobalRegion()
    : AccessHistory(reader_lists_, hidden_accesses_),
      granules(static_cast<Granule*>(lazy_zeros(kShadowBytes))) {
  write = reinterpret_cast<Shadow*>(granules + kRegionGranules);
  read = write + kRegionWords;
}

GlobalRegion::~GlobalRegion() {
  ::munmap(granules, kShadowBytes);
  if (exact != nullptr) ::munmap(exact, kExactBytes);
  delete[] poison.load();
}

Shadow* GlobalRegion::find_bytes(std::uint64_t word) {
  if (exact == nullptr) exact = static_cast<Shadow*>(lazy_zeros(kExactBytes));
  return exact + 8 * word;
}

/// Marks the region as scattered if all its granules' accesses are from earlier launches.
bool GlobalRegion::scatter(Shadow launch) noexcept {
  visits = -kPatience;
  for (std::uint64_t g = 0; g < kRegionGranules; ++g) {
    Granule& granule = granules[g];
    if (granule.write != kByWord && granule.write >= launch) return false;
    if (granule.read < launch) continue;
    const Shadow* const shadows = read + g * kGranuleWords;
    const auto is_recent = [&](Shadow shadow) { return shadow >= launch; };
    if (granule.read != kByWord || std::any_of(shadows, shadows + kGranuleWords, is_recent))
      return false;
    granule.read = 0;
  }
  for (std::uint64_t g = 0; g < kRegionGranules; ++g) granules[g].write = kByWord;
  visits = 0;
  scattered = launch;
  return true;
}

GlobalRegion& GlobalShadow::region(std::uint64_t address) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<GlobalRegion>& slot = regions_[address >> kRegionShift];
  if (slot != nullptr) return *slot;
  if (spare_.empty()) {
    slot = std::make_unique<GlobalRegion>();
  } else {
    slot = std::move(spare_.back());
    spare_.pop_back();
  }
  return *slot;
}

GlobalRegion* GlobalShadow::find(std::uint64_t address) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = regions_.find(address >> kRegionShift);
  return found == regions_.end() ? nullptr : found->second.get();
}

void GlobalShadow::poison(std::uint64_t address, std::uint64_t bytes) {
  by_region(address, bytes, [this](std::uint64_t at, std::uint64_t count) {
    GlobalRegion& there = region(at);
    const std::lock_guard lock(there);
    if (there.poison == nullptr) there.poison = new std::uint64_t[kPoisonWords]();
    set_poison<true>(there.poison, at % kRegionBytes, count);
  });
}

void GlobalShadow::unpoison(std::uint64_t address, std::uint64_t bytes) noexcept {
  by_region(address, bytes, [this](std::uint64_t at, std::uint64_t count) {
    GlobalRegion* const there = find(at);
    if (there == nullptr) return;
    const std::lock_guard lock(*there);
    if (there->poison != nullptr) set_poison<false>(there->poison, at % kRegionBytes, count);
  });
}

void GlobalShadow::copy_poison(std::uint64_t to, std::uint64_t from, std::uint64_t bytes) {
  by_region(from, bytes, [&](std::uint64_t at, std::uint64_t count) {
    const GlobalRegion* const there = find(at);
    const std::uint64_t target = to + (at - from);
    unpoison(target, count);
    if (there == nullptr || there->poison == nullptr) return;
    for (std::uint64_t i = 0; i < count; ++i) {
      if (poison_bits(there->poison, (at + i) % kRegionBytes, 1) != 0) poison(target + i, 1);
    }
  });
}

Unwritten GlobalShadow::unwritten(std::uint64_t address, std::uint64_t bytes) {
  Unwritten all;
  by_region(address, bytes, [&](std::uint64_t at, std::uint64_t count) {
    GlobalRegion* const there = find(at);
    const std::uint64_t* const map = there == nullptr ? nullptr : there->poison.load();
    if (map == nullptr) return;
    for (std::uint64_t i = 0; i < count;) {
      const auto part = static_cast<std::uint32_t>(std::min<std::uint64_t>(count - i, 64));
      const std::uint64_t bits = poison_bits(map, at % kRegionBytes + i, part);
      if (bits != 0 && all.bytes == 0)
        all.first = at + i + static_cast<unsigned>(std::countr_zero(bits)) - address;
      all.bytes += static_cast<unsigned>(std::popcount(bits));
      i += part;
    }
  });
  return all;
}

void GlobalShadow::clear() noexcept {
  const std::lock_guard lock(mutex_);
  for (auto& entry : regions_) {
    GlobalRegion& region = *entry.second;
    // Bytes with shadows of their own hold for good: such a region is not worth cleaning.
    if (spare_.size() == kMostSpare || region.exact != nullptr) continue;
    delete[] region.poison.exchange(nullptr);
    region.forget();
    spare_.push_back(std::move(entry.second));
  }
  regions_.clear();
}

void GlobalShadow::clear_shadows() noexcept {
  const std::lock_guard lock(mutex_);
  spare_.clear();
  for (auto& entry : regions_) {
    entry.second->forget();
    ::madvise(entry.second->granules, kShadowBytes, MADV_DONTNEED);
    if (entry.second->exact != nullptr) ::madvise(entry.second->exact, kExactBytes, MADV_DONTNEED);
  }
}

}  // namespace kernwright::sim
