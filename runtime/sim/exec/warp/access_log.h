// The bytes of global memory touched by device code, for the check of order between streams.
#pragma once

#include "sim/mem/access_kind.h"

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

namespace kernwright::sim {

/// Bytes [begin, end) in device addresses.
struct Touched {
  std::uint64_t begin = 0, end = 0;
  AccessKind kind = AccessKind::read;
};

/// Exact to the byte. Not thread-safe: each worker of a launch has its own.
class AccessLog {
 public:
  void note(std::uint64_t address, std::uint64_t bytes, AccessKind kind);
  /// Adds the accesses of `other`.
  void merge(const AccessLog& other);
  /// Forgets the pages used by this allocation alone.
  void drop(std::uint64_t address, std::uint64_t bytes);
  /// Touching ranges of one kind joined, in order of kind and address.
  std::vector<Touched> ranges() const;
  bool empty() const noexcept { return pages_.empty(); }

 private:
  static constexpr int kPageShift = 12;
  static constexpr int kWordBits = 64;
  static constexpr std::size_t kWords = (std::size_t{1} << kPageShift) / kWordBits;
  /// One bit for each byte of the page, per kind.
  using Page = std::array<std::array<std::uint64_t, kWords>, 3>;

  Page& page(std::uint64_t number);

  std::unordered_map<std::uint64_t, std::unique_ptr<Page>> pages_;
  std::uint64_t last_number_ = ~std::uint64_t{0};
  Page* last_ = nullptr;
};

}  // namespace kernwright::sim
