// What follows a matrix product, in float32: a factor, a bias, another matrix, an activation.
#pragma once

#include <kernwright/activations.cuh>
#include <kernwright/elements.cuh>

namespace kernwright {

/// Of activation(alpha * a @ b + bias + beta * c): a bias for each column, c of the result's shape
/// and type, row-major.
struct ProductEpilogueValues {
  const void* bias;
  const void* c;
  float alpha, beta;
  Knobs<float> knobs;
};

/// No activation.
struct Same {
  __device__ static float value(float x, Knobs<float>) { return x; }
};
struct NoBias {
  char none;
};
__device__ __forceinline__ float to_compute(NoBias) { return 0; }

/// What happens to sums. kAdds: there is a c.
template <typename Activation, typename Bias, bool kAdds>
struct Epilogue {
  static constexpr bool kHasC = kAdds;

  __device__ static float bias(const ProductEpilogueValues& with, int column, int columns) {
    if (sizeof(Bias) == sizeof(NoBias) || column >= columns) return 0;
    return to_compute(static_cast<const Bias*>(with.bias)[column]);
  }
  __device__ static float finish(const ProductEpilogueValues& with, float sum, float bias,
                                 float c) {
    float total = with.alpha * sum;
    if (sizeof(Bias) != sizeof(NoBias)) total += bias;
    if (kAdds) total += with.beta * c;
    return Activation::value(total, with.knobs);
  }
};

}  // namespace kernwright
