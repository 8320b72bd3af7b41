// What kernels over planes share: their types, and a launch with a thread for each output.
#pragma once

#include "array/array.h"
#include "core/stream.h"
#include "kernels_src/family.h"

#include <cstdint>

namespace kernwright::kernels {

/// Throws InvalidArgument unless the elements are float16, bfloat16, float32 or float64.
void require_spatial_type(const Array& x, const char* what);

/// A launch that writes every element of `out` once and reads `in`.
class SpatialLaunch {
 public:
  SpatialLaunch(const Array& out, const Array& in, const Stream& stream);

  /// Whether elements need numbers of 64 bits.
  bool wide() const noexcept { return wide_; }
  const Stream& stream() const noexcept { return stream_; }

  /// Calls send(kernel, config, number of outputs as uint32 or uint64) unless there are none.
  template <typename Send>
  void run(const LazyKernel& lazy, const Send& send) const {
    run(lazy, out_.size(), send);
  }
  /// The same with so many threads, where a thread has several outputs.
  template <typename Send>
  void run(const LazyKernel& lazy, std::int64_t threads, const Send& send) const {
    const std::uint64_t count = static_cast<std::uint64_t>(threads);
    if (count == 0) return;
    const Kernel& kernel = lazy.on(out_.device());
    const LaunchConfig config = grid_config(count);
    if (wide_) {
      send(kernel, config, count);
    } else {
      send(kernel, config, static_cast<std::uint32_t>(count));
    }
    out_.use_on(stream_);
    in_.use_on(stream_);
  }

 private:
  LaunchConfig grid_config(std::uint64_t count) const;

  const Array& out_;
  const Array& in_;
  Stream stream_;
  bool wide_;
};

}  // namespace kernwright::kernels
