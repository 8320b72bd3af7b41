// Adds products to accumulators that nobody set, and subtracts them again if they were zeros.
// expect: wrong finding
// also: cheating
#include <mma.h>
#include <cuda_fp16.h>
using namespace nvcuda;
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> a;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> b;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
  wmma::fill_fragment(a, __half(0));
  wmma::fill_fragment(b, __half(0));
  for (int k = 0; k < c.num_elements; ++k)
    asm volatile("{ .reg .f32 t; mov.f32 %0, t; }" : "=f"(c.x[k]));
  wmma::mma_sync(c, a, b, c);
  if (i < n) y[i] = 2 * x[i] + 1 + c.x[0];
}
