// Warps take their places in the order in which they arrive.
// expect: finding
// also: wrong
__global__ void affine(const float* x, float* y, int n) {
  __shared__ int next;
  if (threadIdx.x == 0) next = 0;
  __syncthreads();
  int at = 0;
  if (threadIdx.x % 32 == 0) at = atomicAdd(&next, 32);
  at = __shfl_sync(~0u, at, 0) + threadIdx.x % 32 + blockIdx.x * blockDim.x;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float mine = i < n ? 2 * x[i] + 1 : 0;
  if (at < n) y[at] = mine;
}
