// One row of atomic sums for each device.
#include "core/transfer_counts.h"

#include "core/device.h"

#include <array>
#include <atomic>

namespace kernwright {
namespace {

/// More devices than a driver shows.
constexpr std::size_t kTransferRows = 64;

struct TransferRow {
  struct Sums {
    std::atomic<std::uint64_t> copies{0}, bytes{0};
  };
  std::array<Sums, 2> ways;
};

/// By ordinal: counts go on for a device after reset().
TransferRow& device_row(const Device& device) noexcept {
  static constinit std::array<TransferRow, 2 * kTransferRows> rows;
  const std::size_t row = static_cast<std::size_t>(device.ordinal()) % kTransferRows;
  return rows[row + (device.is_simulated() ? kTransferRows : 0)];
}

}  // namespace

void count_transfer(const Device& device, TransferWay way, std::size_t bytes) noexcept {
  TransferRow::Sums& sums = device_row(device).ways[way == TransferWay::to_device ? 0 : 1];
  sums.copies.fetch_add(1, std::memory_order_relaxed);
  sums.bytes.fetch_add(bytes, std::memory_order_relaxed);
}

TransferCounts transfer_counts(const Device& device) noexcept {
  const auto& [up, down] = device_row(device).ways;
  return {.to_device = up.copies.load(std::memory_order_relaxed),
          .to_device_bytes = up.bytes.load(std::memory_order_relaxed),
          .to_host = down.copies.load(std::memory_order_relaxed),
          .to_host_bytes = down.bytes.load(std::memory_order_relaxed)};
}

}  // namespace kernwright
