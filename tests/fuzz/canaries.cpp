// Bytes behind allocations of a simulated device that nothing may change.
#include "fuzz/canaries.h"

#include "sim/mem/address.h"

#include <cstddef>
#include <cstring>
#include <stdexcept>

namespace kernwright::fuzz {
namespace {

constexpr std::size_t kBytes = 512;
constexpr int kValue = 0xc5;
/// Gaps of larger allocations are closed: mem/address_space.h.
constexpr std::uint64_t kLargestOpen = 512 << 10;

}  // namespace

void Canaries::watch(std::uint64_t address, std::uint64_t bytes) {
  if (bytes > kLargestOpen) return;
  std::byte* const end = sim::host_pointer(address) + bytes;
  std::memset(end, kValue, kBytes);
  ends_.push_back(reinterpret_cast<std::uint64_t>(end));
}

void Canaries::check() const {
  for (const std::uint64_t end : ends_) {
    const auto* const bytes = reinterpret_cast<const unsigned char*>(end);
    for (std::size_t i = 0; i < kBytes; ++i) {
      if (bytes[i] != kValue) throw std::logic_error("a kernel wrote behind an allocation");
    }
  }
}

}  // namespace kernwright::fuzz
