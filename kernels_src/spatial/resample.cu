// Interpolation along one axis, and the gradient: arrays are (outer, axis, inner).
#include <kernwright/elements.cuh>

using namespace kernwright;

enum Interpolation { kNearest, kNearestExact, kLinear, kCubic };

/// Distances on the input for a step of 1 on the output.
template <typename Real>
struct Axis {
  int in, out;
  Real scale;
  bool align_corners;
};

/// The input places that an output takes, from `first` on, and their weights. Places beyond the
/// ends stand for the elements at the ends.
template <Interpolation kMode, typename Real>
struct Taps {
  static constexpr int kCount = kMode == kCubic ? 4 : kMode == kLinear ? 2 : 1;
  int first;
  Real weight[kCount];

  __device__ Taps(const Axis<Real>& axis, int o) {
    if constexpr (kMode == kNearest || kMode == kNearestExact) {
      // torch finds nearest places in float32, whatever the dtype.
      const float at = static_cast<float>(o) + (kMode == kNearestExact ? 0.5f : 0.0f);
      first = static_cast<int>(floorf(at * static_cast<float>(axis.scale)));
      weight[0] = 1;
      return;
    }
    Real at = axis.align_corners ? o * axis.scale
                                 : (static_cast<Real>(o) + Real(0.5)) * axis.scale - Real(0.5);
    if (kMode == kLinear && at < 0) at = 0;
    const Real below = floor(at);
    const Real t = at - below;
    first = static_cast<int>(below);
    if constexpr (kMode == kLinear) {
      weight[0] = 1 - t;
      weight[1] = t;
    }
    if constexpr (kMode == kCubic) {
      first -= 1;
      weight[0] = outer(1 + t);
      weight[1] = inner(t);
      weight[2] = inner(1 - t);
      weight[3] = outer(2 - t);
    }
  }
  __device__ int place(const Axis<Real>& axis, int k) const {
    return min(max(first + k, 0), axis.in - 1);
  }

 private:
  // R. Keys, "Cubic convolution interpolation for digital image processing", 1981, with a = -3/4.
  static constexpr double kA = -0.75;
  __device__ static Real inner(Real x) {
    return (Real(kA + 2) * x - Real(kA + 3)) * x * x + 1;
  }
  __device__ static Real outer(Real x) {
    return ((Real(kA) * x - Real(5 * kA)) * x + Real(8 * kA)) * x - Real(4 * kA);
  }
};


template <Interpolation kMode, typename In, typename Out, typename Index>
__global__ void __launch_bounds__(256)
    resample(Out* out, const In* in, Index count, Index inner, const Axis<Compute<In>> axis) {
  using Real = Compute<In>;
  for (Index i = static_cast<Index>(blockIdx.x) * 256 + threadIdx.x; i < count;
       i += static_cast<Index>(gridDim.x) * 256) {
    const Index line = i / inner, outer = line / static_cast<Index>(axis.out);
    const Taps<kMode, Real> taps(axis, static_cast<int>(line - outer * axis.out));
    const In* const from = in + outer * axis.in * inner + (i - line * inner);
    Real sum = 0;
#pragma unroll
    for (int k = 0; k < taps.kCount; ++k) {
      const Real value = to_compute(from[static_cast<Index>(taps.place(axis, k)) * inner]);
      sum = taps.kCount == 1 ? value : sum + taps.weight[k] * value;
    }
    out[i] = from_compute<Out>(static_cast<Compute<Out>>(sum));
  }
}

/// Each input gathers from the outputs that took it, in order.
template <Interpolation kMode, typename In, typename Out, typename Index>
__global__ void __launch_bounds__(256) resample_backward(Out* dx, const In* dy, Index count,
                                                         Index inner,
                                                         const Axis<Compute<In>> axis) {
  using Real = Compute<In>;
  for (Index i = static_cast<Index>(blockIdx.x) * 256 + threadIdx.x; i < count;
       i += static_cast<Index>(gridDim.x) * 256) {
    const Index line = i / inner, outer = line / static_cast<Index>(axis.in);
    const int here = static_cast<int>(line - outer * axis.in);
    const In* const from = dy + outer * axis.out * inner + (i - line * inner);
    int first = 0, last = axis.out;
    if (axis.scale > 0) {  // a tap lies at most 3 positions from its output
      first = max(static_cast<int>(floor((here - 3) / axis.scale)) - 1, 0);
      const Real end = ceil((here + 4) / axis.scale) + 2;
      if (end < last) last = static_cast<int>(end);
    }
    Real sum = 0;
    for (int o = first; o < last; ++o) {
      const Taps<kMode, Real> taps(axis, o);
      Real weight = 0;
#pragma unroll
      for (int k = 0; k < taps.kCount; ++k)
        if (taps.place(axis, k) == here) weight += taps.weight[k];
      if (weight != 0) sum += weight * to_compute(from[static_cast<Index>(o) * inner]);
    }
    dx[i] = from_compute<Out>(static_cast<Compute<Out>>(sum));
  }
}
