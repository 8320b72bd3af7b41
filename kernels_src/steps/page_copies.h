// Copies of pages of caches between the device and page-locked memory of the host.
#pragma once

#include "array/array.h"
#include "core/stream.h"

#include <cstdint>
#include <span>
#include <vector>

namespace kernwright::kernels {

/// A page of the KV caches, and the host slot of the copy.
struct PageMove {
  std::int32_t page = 0, slot = 0;
};

/// Where a slot keeps the pages of all arrays: one behind the other.
class PageCopies {
 public:
  /// `arrays` are contiguous, and the bytes of a page are a multiple of 16. Throws InvalidArgument
  /// for further arrays, and for an empty list.
  explicit PageCopies(std::vector<Array> arrays);

  std::int64_t slot_bytes() const noexcept { return 16 * slot_units_; }
  /// Queues copies of pages to slots of the memory at `host`, or back, on `stream`.
  void copy(CUdeviceptr host, std::span<const PageMove> moves, bool to_host,
            const Stream& stream) const;

 private:
  std::vector<Array> arrays_;
  Array parts_;
  std::int64_t slot_units_ = 0;
};

}  // namespace kernwright::kernels
