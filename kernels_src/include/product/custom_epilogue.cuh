// The names for a caller's own expression at the end of a matrix product, besides CUDA's functions
// and sigmoid(), softplus().
#pragma once

#include <kernwright/product_epilogue.cuh>

namespace kernwright {
namespace custom {

__device__ __forceinline__ float relu(float x) { return Relu::value(x, {}); }
__device__ __forceinline__ float silu(float x) { return Silu::value(x, {}); }
__device__ __forceinline__ float gelu(float x) { return ErfcGelu::value(x, {}); }
__device__ __forceinline__ float gelu_tanh(float x) { return GeluTanh::value(x, {}); }
__device__ __forceinline__ float clip(float x, float low, float high) {
  return x < low ? low : x > high ? high : x;
}

}  // namespace custom
}  // namespace kernwright
