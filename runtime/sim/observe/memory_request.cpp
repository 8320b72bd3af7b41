// Counts sectors, lines, banks and equal addresses of a warp's access.
#include "sim/observe/memory_request.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <span>
#include <utility>

namespace kernwright::sim {
namespace {

/// Calls f(lane, address, bytes) for each lane with an access.
template <typename F>
void each_access(const MemoryRequest& request, F f) {
  for (std::uint32_t m = request.mask; m != 0; m &= m - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(m));
    if (request.bytes[lane] != 0) f(lane, request.address[lane], request.bytes[lane]);
  }
}

/// Calls sort() only where it is needed: most accesses go upwards.
template <typename It>
void sort_some(It begin, It end) {
  if (!std::is_sorted(begin, end)) std::sort(begin, end);
}

/// The set of different values among a few numbers.
class Numbers {
 public:
  void add(std::uint64_t value) {
    if (count_ != 0 && values_[count_ - 1] == value) return;
    values_[count_++] = value;
  }
  std::span<const std::uint64_t> different() {
    sort_some(values_, values_ + count_);
    count_ = static_cast<std::size_t>(std::unique(values_, values_ + count_) - values_);
    return {values_, count_};
  }
  void add_units(std::uint64_t address, std::uint64_t bytes, std::uint64_t unit) {
    for (std::uint64_t n = address / unit; n <= (address + bytes - 1) / unit; ++n) add(n);
  }
  std::uint32_t count() { return static_cast<std::uint32_t>(different().size()); }

 private:
  /// Words of at most 255 bytes a lane.
  static constexpr std::size_t kMost = std::size_t{kLanes} * 65;
  std::uint64_t values_[kMost];  // filled as far as count_ says
  std::size_t count_ = 0;
};

std::uint64_t different_bytes(const MemoryRequest& request) {
  std::array<std::pair<std::uint64_t, std::uint64_t>, kLanes> ranges;
  std::size_t count = 0;
  each_access(request, [&](std::size_t, std::uint64_t address, std::uint64_t bytes) {
    ranges[count++] = {address, address + bytes};
  });
  sort_some(ranges.begin(), ranges.begin() + static_cast<std::ptrdiff_t>(count));
  std::uint64_t sum = 0, end = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto& [from, to] = ranges[i];
    if (to <= end) continue;
    sum += to - std::max(from, end);
    end = to;
  }
  return sum;
}

/// Number of lanes served together.
int group_lanes(const MemoryRequest& request) {
  std::uint32_t widest = 0;
  each_access(request, [&](std::size_t, std::uint64_t, std::uint32_t bytes) {
    widest = std::max(widest, bytes);
  });
  return widest <= 4 ? kLanes : widest <= 8 ? kLanes / 2 : kLanes / 4;
}

}  // namespace

GlobalTraffic global_traffic(const MemoryRequest& request) {
  GlobalTraffic traffic;
  Numbers sectors, lines;
  each_access(request, [&](std::size_t, std::uint64_t address, std::uint32_t bytes) {
    traffic.bytes += bytes;
    sectors.add_units(address, bytes, kSectorBytes);
    lines.add_units(address, bytes, kLineBytes);
  });
  traffic.sectors = sectors.count();
  traffic.lines = lines.count();
  traffic.ideal_sectors =
      static_cast<std::uint32_t>((different_bytes(request) + kSectorBytes - 1) / kSectorBytes);
  return traffic;
}

SharedTraffic shared_traffic(const MemoryRequest& request) {
  SharedTraffic traffic;
  const int group = group_lanes(request);
  for (int first = 0; first < kLanes; first += group) {
    Numbers words;
    each_access(request, [&](std::size_t lane, std::uint64_t address, std::uint32_t bytes) {
      const auto l = static_cast<int>(lane);
      if (l >= first && l < first + group) words.add_units(address, bytes, 4);
    });
    std::array<std::uint32_t, kBanks> load{};
    for (const std::uint64_t word : words.different()) ++load[word % kBanks];
    const std::uint32_t most = *std::max_element(load.begin(), load.end());
    traffic.wavefronts += most;
    traffic.ideal_wavefronts += most != 0 ? 1 : 0;
  }
  return traffic;
}

std::uint32_t local_sectors(const MemoryRequest& request) {
  Numbers sectors;
  each_access(request, [&](std::size_t lane, std::uint64_t address, std::uint32_t bytes) {
    for (std::uint64_t word = address / 4; word <= (address + bytes - 1) / 4; ++word)
      sectors.add((word * kLanes + lane) * 4 / kSectorBytes);
  });
  return sectors.count();
}

std::uint32_t same_address_passes(const MemoryRequest& request) {
  std::array<std::uint64_t, kLanes> addresses;
  std::size_t count = 0;
  each_access(request, [&](std::size_t, std::uint64_t address, std::uint32_t) {
    addresses[count++] = address;
  });
  sort_some(addresses.begin(), addresses.begin() + static_cast<std::ptrdiff_t>(count));
  std::uint32_t most = 0, run = 0;
  for (std::size_t i = 0; i < count; ++i) {
    run = i != 0 && addresses[i] == addresses[i - 1] ? run + 1 : 1;
    most = std::max(most, run);
  }
  return most;
}

}  // namespace kernwright::sim
