// Loads fragments of shared memory again and again, so that less work is asked of it.
// expect: impossible
// task: claims_little
// only: counts
#include <mma.h>
#include <cuda_fp16.h>
using namespace nvcuda;
__global__ void twice(const __half* x, __half* y, int n) {
  __shared__ __half part[256];
  for (int i = threadIdx.x; i < 256; i += 32) part[i] = x[blockIdx.x * 256 + i];
  __syncwarp();
  wmma::fragment<wmma::accumulator, 16, 16, 16, __half> f;
  for (int k = 0; k < 20; ++k) {
    wmma::load_matrix_sync(f, part, 16, wmma::mem_row_major);
    __syncwarp();
  }
  for (int k = 0; k < f.num_elements; ++k) f.x[k] = f.x[k] + f.x[k];
  wmma::store_matrix_sync(part, f, 16, wmma::mem_row_major);
  __syncwarp();
  for (int i = threadIdx.x; i < 256; i += 32) y[blockIdx.x * 256 + i] = part[i];
}
