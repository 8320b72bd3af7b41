// How two strided views of one shape are walked together, in as few dimensions as possible.
#pragma once

#include "array/array.h"
#include "core/kernel.h"
#include "core/stream.h"
#include "driver/driver_types.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace kernwright::kernels {

/// One dimension of both views; strides in bytes.
struct StridedDim {
  std::int64_t extent = 0;
  std::int64_t to = 0;
  std::int64_t from = 0;
  bool operator==(const StridedDim&) const = default;
};

/// A target and a source, the innermost dimension first. Strides of the target are positive and
/// rise; dimensions of extent 1 are gone; neighbours that follow each other in both are one.
struct StridedPlan {
  CUdeviceptr to = 0;
  CUdeviceptr from = 0;
  std::vector<StridedDim> dims;

  std::int64_t count() const noexcept;  ///< elements
};

/// Plans a walk over views with these strides. `inner` dimensions of it, when given, lie inside of
/// each element. The shape holds no 0. Throws InvalidArgument when the target has stride 0 over
/// more than one element, as threads would then write to the same place.
StridedPlan plan_strided(CUdeviceptr to, std::span<const std::int64_t> to_strides, CUdeviceptr from,
                         std::span<const std::int64_t> from_strides,
                         std::span<const std::int64_t> shape, std::int64_t inner_extent = 1,
                         std::int64_t inner_stride = 1);

/// Dimensions that a kernel takes; a plan of more is launched once for each index of the rest.
inline constexpr std::size_t kMaxDims = 8;

/// Queues `narrow` (32-bit indices) or `wide` (64-bit) over the plan: kernels whose parameters are
/// (char* to, const char* from, StridedPair view, Index count).
class StridedLauncher {
 public:
  virtual ~StridedLauncher() = default;
  void launch(const StridedPlan& plan, const Stream& stream) const;

 protected:
  /// The kernel for counts that fit 31 bits, or for any.
  virtual const Kernel& kernel(bool wide) const = 0;
  /// Elements of a thread, before it stops for want of more blocks.
  virtual int elements_each(std::int64_t) const { return 1; }

 private:
  void launch_one(const StridedPlan& plan, const Stream& stream) const;
};

}  // namespace kernwright::kernels
