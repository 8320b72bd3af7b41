// The account of live allocations, and its report by place.
#include "memory/allocation_ledger.h"

#include "base/byte_text.h"
#include "base/errors.h"
#include "base/format.h"
#include "memory/allocation_site.h"

#include <algorithm>
#include <map>
#include <utility>

namespace kernwright {

void AllocationLedger::add(CUdeviceptr address, std::size_t bytes, std::uint64_t stream) {
  const std::lock_guard lock(mutex_);
  live_.emplace(address, AllocationRecord{address, bytes, stream, stats_.allocations + 1,
                                          current_allocation_site()});
  ++stats_.allocations;
  ++stats_.misses;
  ++stats_.driver_allocs;
  ++stats_.blocks;
  ++stats_.segments;
  stats_.used += bytes;
  stats_.used_peak = std::max(stats_.used_peak, stats_.used);
  sample();
}

HistorySample AllocationLedger::moment() const noexcept {
  const std::chrono::duration<double> age = std::chrono::steady_clock::now() - begin_;
  return {age.count(), stats_.allocations + stats_.frees, stats_.used, stats_.used, 0};
}

void AllocationLedger::sample() noexcept {
  if (history_.is_due(stats_.allocations + stats_.frees)) history_.add(moment());
}

std::vector<HistorySample> AllocationLedger::history() const {
  const std::lock_guard lock(mutex_);
  std::vector<HistorySample> samples = history_.samples();
  samples.push_back(moment());
  return samples;
}

AllocationLedger::Promise::Promise(AllocationLedger& ledger, std::size_t bytes) noexcept
    : ledger_(ledger), bytes_(bytes), kept_(ledger.promise(bytes)) {}

AllocationLedger::Promise::~Promise() {
  if (!kept_) return;
  const std::lock_guard lock(ledger_.mutex_);
  ledger_.promised_ -= bytes_;
}

bool AllocationLedger::promise(std::size_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  const std::uint64_t taken = stats_.used + promised_;
  if (stats_.limit != 0 && (bytes > stats_.limit || taken > stats_.limit - bytes)) return false;
  promised_ += bytes;
  return true;
}

bool AllocationLedger::set_limit(std::size_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  if (bytes != 0 && bytes < stats_.used) return false;
  stats_.limit = bytes;
  return true;
}

void AllocationLedger::remove(CUdeviceptr address, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto found = live_.find(address);
  if (found == live_.end()) {
    ++stats_.refused_frees;
    throw InvalidArgument(
        format("cannot free {:#x}: no memory of this resource starts there, or "
               "it was freed already",
               address));
  }
  if (found->second.bytes != bytes) {
    ++stats_.refused_frees;
    throw InvalidArgument(format("cannot free {} bytes at {:#x}: {} were allocated there", bytes,
                                 address, found->second.bytes));
  }
  live_.erase(found);
  ++stats_.frees;
  ++stats_.driver_frees;
  --stats_.blocks;
  --stats_.segments;
  stats_.used -= bytes;
  sample();
}

void AllocationLedger::note_failure() noexcept {
  const std::lock_guard lock(mutex_);
  ++stats_.failures;
}

void AllocationLedger::note_eviction() noexcept {
  const std::lock_guard lock(mutex_);
  ++stats_.evictions;
}

std::vector<AllocationRecord> AllocationLedger::records() const {
  std::vector<AllocationRecord> list;
  {
    const std::lock_guard lock(mutex_);
    list.reserve(live_.size());
    for (const auto& [address, record] : live_) list.push_back(record);
  }
  std::sort(list.begin(), list.end(),
            [](const auto& a, const auto& b) { return a.serial < b.serial; });
  return list;
}

MemoryStats AllocationLedger::stats() const {
  const std::lock_guard lock(mutex_);
  MemoryStats stats = stats_;
  stats.reserved = stats.used;
  stats.reserved_peak = stats.used_peak;
  return stats;
}

std::string describe_holders(const std::vector<AllocationRecord>& records, std::size_t limit) {
  struct Holder {
    std::uint64_t count = 0, bytes = 0;
    const LaunchSite* site = nullptr;
  };
  std::map<std::pair<const void*, std::uint64_t>, Holder> by_site;
  for (const AllocationRecord& record : records) {
    Holder& holder = by_site[{record.site.origin, record.site.position}];
    ++holder.count;
    holder.bytes += record.bytes;
    holder.site = &record.site;
  }
  std::vector<Holder> holders;
  for (const auto& [site, holder] : by_site) holders.push_back(holder);
  std::sort(holders.begin(), holders.end(),
            [](const Holder& a, const Holder& b) { return a.bytes > b.bytes; });
  std::string text;
  for (std::size_t i = 0; i < holders.size(); ++i) {
    if (i == limit) {
      text += format(" and {} more places", holders.size() - limit);
      break;
    }
    const Holder& holder = holders[i];
    const std::string place = holder.site->to_string();
    text += format("{}{} in {} allocation{} from {}", i == 0 ? "" : ", ",
                   describe_bytes(holder.bytes), holder.count, holder.count == 1 ? "" : "s",
                   place.empty() ? "an unknown place" : place);
  }
  return text;
}

}  // namespace kernwright
