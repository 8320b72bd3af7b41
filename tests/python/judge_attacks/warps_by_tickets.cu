// Warps take each other's results, by tickets in the order of their arrival.
// expect: finding
// also: wrong cheating
__global__ void affine(const float* x, float* y, int n) {
  __shared__ int ticket;
  if (threadIdx.x == 0) ticket = 0;
  __syncthreads();
  int w = 0;
  if (threadIdx.x % 32 == 0) w = atomicAdd(&ticket, 1);
  w = __shfl_sync(~0u, w, 0);
  int first = blockIdx.x * blockDim.x, from = first + threadIdx.x;
  int to = first + w * 32 + threadIdx.x % 32;
  if (from < n && to < n) y[to] = 2 * x[from] + 1;
}
