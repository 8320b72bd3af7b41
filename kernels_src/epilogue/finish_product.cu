// Adds up the parts of a product split along the inner dimension, in their order, and does the work
// that follows a product.
#include <kernwright/elements.cuh>
#include <kernwright/overlap.cuh>
#include <kernwright/product_epilogue.cuh>

using namespace kernwright;

constexpr int kThreads = 256;

/// `parts` of `size` partial results one behind the other. Each thread has kWidth neighbours at a
/// time, which are of one row.
template <typename Out, typename Finish, int kWidth>
__global__ void __launch_bounds__(kThreads)
    finish_product(const float* partials, Out* __restrict__ out, const TileEpilogueValues epilogue,
                   long long size, int columns, int parts) {
  pdl_launch_then_wait();
  const long long apart = static_cast<long long>(gridDim.x) * kThreads * kWidth;
  long long at = (static_cast<long long>(blockIdx.x) * kThreads + threadIdx.x) * kWidth;
  for (; at < size; at += apart) {
    Pack<float, kWidth> total = *reinterpret_cast<const Pack<float, kWidth>*>(partials + at);
    for (int part = 1; part < parts; ++part) {
      const Pack<float, kWidth> more =
          *reinterpret_cast<const Pack<float, kWidth>*>(partials + part * size + at);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) total.value[i] += more.value[i];
    }
    const int row = static_cast<int>(at / columns), column = static_cast<int>(at % columns);
    const int rows = static_cast<int>(size / columns);
    const Factors<Finish> row_factors(epilogue.row_scales, row, 0, rows);
    Pack<Out, kWidth> result, added;
    if constexpr (Finish::kHasC) {
      added = *reinterpret_cast<const Pack<Out, kWidth>*>(static_cast<const Out*>(epilogue.c) + at);
    }
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      const float c = Finish::kHasC ? to_compute(added.value[i]) : 0.0f;
      const Biases bias = Finish::biases(epilogue, column + i, columns);
      const Factors<Finish> column_factors(column_scales(epilogue), column + i, 0, columns);
      const float sum = scaled(total.value[i], row_factors, 0, column_factors, 0);
      result.value[i] = ended_as<Out>(Finish::finish(epilogue, sum, 0, bias, 0, c));
    }
    *reinterpret_cast<Pack<Out, kWidth>*>(out + at) = result;
  }
}
