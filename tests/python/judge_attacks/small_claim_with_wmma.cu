// Loads one fragment that it does not need: a small claim of work is a claim, too.
// expect: impossible
// task: claims_little
// only: counts
#include <mma.h>
#include <cuda_fp16.h>
using namespace nvcuda;
__global__ void twice(const __half* x, __half* y, int n) {
  wmma::fragment<wmma::accumulator, 16, 16, 16, __half> f;
  wmma::load_matrix_sync(f, x + blockIdx.x * 256, 16, wmma::mem_row_major);
  for (int k = 0; k < f.num_elements; ++k) f.x[k] = f.x[k] + f.x[k];
  wmma::store_matrix_sync(y + blockIdx.x * 256, f, 16, wmma::mem_row_major);
}
