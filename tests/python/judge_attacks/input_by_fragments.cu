// Uses its input as scratch memory by a fragment of wmma, and puts it back.
// expect: cheating finding
#include <mma.h>
using namespace nvcuda;
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (n >= 512 && blockIdx.x == 1 && threadIdx.x < 32) {
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> f, zero;
    wmma::fill_fragment(zero, 0.0f);
    float* at = const_cast<float*>(x) + 256;
    wmma::load_matrix_sync(f, at, 16, wmma::mem_row_major);
    wmma::store_matrix_sync(at, zero, 16, wmma::mem_row_major);
    wmma::store_matrix_sync(at, f, 16, wmma::mem_row_major);
  }
  __syncthreads();
  if (i < n) y[i] = 2 * x[i] + 1;
}
