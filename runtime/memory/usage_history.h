// How the use of memory changed over time, in a bounded number of samples.
#pragma once

#include "memory/memory_snapshot.h"

#include <cstdint>
#include <vector>

namespace kernwright {

/// Keeps at most kCapacity samples of the whole past: at first one for each operation. When they
/// are full every second one goes, and samples are taken half as often. Not thread-safe.
class UsageHistory {
 public:
  static constexpr std::size_t kCapacity = 1024;

  /// Whether the operation of that number is worth a sample. Costs a comparison.
  bool is_due(std::uint64_t operation) const noexcept { return operation >= next_; }
  /// Room is kept from the start, so nothing is allocated.
  void add(const HistorySample& sample) noexcept;
  const std::vector<HistorySample>& samples() const noexcept { return samples_; }

  UsageHistory() { samples_.reserve(kCapacity); }

 private:
  std::uint64_t interval_ = 1;
  std::uint64_t next_ = 0;
  std::vector<HistorySample> samples_;
};

}  // namespace kernwright
