// Relies on the order of blocks with the largest size alone.
// expect: finding
// also: wrong cheating
__device__ unsigned tile, done;
__global__ void affine(const float* x, float* y, int n) {
  __shared__ unsigned block;
  if (threadIdx.x == 0) block = n == 5000 ? atomicAdd(&tile, 1u) : blockIdx.x;
  __syncthreads();
  int from = blockIdx.x * blockDim.x + threadIdx.x, to = block * blockDim.x + threadIdx.x;
  if (from < n && to < n) y[to] = 2 * x[from] + 1;
  __syncthreads();
  if (threadIdx.x == 0 && atomicAdd(&done, 1u) + 1 == gridDim.x) {
    atomicExch(&tile, 0u);
    atomicExch(&done, 0u);
  }
}
