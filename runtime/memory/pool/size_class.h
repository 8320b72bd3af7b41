// The sizes that a pool hands out: sixteen steps for each doubling.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace kernwright {

/// Addresses and sizes of a pool's blocks are multiples of this many bytes.
inline constexpr std::size_t kGranule = 256;

/// Requests are rounded up to a size class: every multiple of 256 bytes up to 4 KiB, then sixteen
/// classes for each doubling. The waste of a request of n bytes is below max(256, n / 16) bytes.
class SizeClass {
 public:
  static constexpr unsigned kCount = 864;  ///< classes of all sizes up to 2^63 bytes

  /// The smallest class of at least `bytes`, between 1 and 2^63.
  static constexpr SizeClass holding(std::size_t bytes) noexcept {
    const std::uint64_t granules = (bytes + kGranule - 1) / kGranule;
    const unsigned shift = class_shift(granules);
    const std::uint64_t steps = (granules + (std::uint64_t{1} << shift) - 1) >> shift;
    return SizeClass(shift * kSteps + static_cast<unsigned>(steps) - 1);
  }
  /// The largest class that a block of `bytes`, a multiple of 256 and not 0, can serve.
  static constexpr SizeClass served_by(std::size_t bytes) noexcept {
    const std::uint64_t granules = bytes / kGranule;
    const unsigned shift = class_shift(granules);
    return SizeClass(shift * kSteps + static_cast<unsigned>(granules >> shift) - 1);
  }

  constexpr unsigned index() const noexcept { return index_; }
  constexpr std::size_t bytes() const noexcept {
    const unsigned doubling = index_ < kSteps ? 0 : (index_ - kSteps) / kSteps;
    return (std::size_t{index_ - doubling * kSteps + 1} << doubling) * kGranule;
  }

 private:
  static constexpr unsigned kSteps = 16;
  constexpr explicit SizeClass(unsigned index) noexcept : index_(index) {}
  /// Doublings beyond the range in which every multiple of the granule is a class.
  static constexpr unsigned class_shift(std::uint64_t granules) noexcept {
    return granules < 2 * kSteps ? 0 : static_cast<unsigned>(std::bit_width(granules)) - 5;
  }

  unsigned index_;
};

}  // namespace kernwright
