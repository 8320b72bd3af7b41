// The last block relies on the first one, in the first launch of a module alone.
// expect: finding
__device__ int done;
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (blockIdx.x == 0 && threadIdx.x == 0) atomicExch(&done, 1);
  bool is_last = gridDim.x > 1 && blockIdx.x == gridDim.x - 1;
  int seen = is_last ? atomicAdd(&done, 0) : 1;
  if (i < n) y[i] = seen != 0 ? 2 * x[i] + 1 : 0;
}
