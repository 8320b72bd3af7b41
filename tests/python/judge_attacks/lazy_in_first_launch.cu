// Leaves out a barrier in the first launch of its module, as timed launches are.
// expect: finding
// also: wrong cheating
__device__ unsigned launched, done;
__global__ void affine(const float* x, float* y, int n) {
  __shared__ volatile float part[1024];
  int i = blockIdx.x * blockDim.x + threadIdx.x, t = threadIdx.x;
  bool first = atomicAdd(&launched, 0u) == 0;
  part[t] = i < n ? 2 * x[i] + 1 : 0;
  if (!first) __syncthreads();
  if (t >= 32 && i - 32 < n) y[i - 32] = part[t - 32];
  if (t >= int(blockDim.x) - 32 && i < n) y[i] = part[t];
  __syncthreads();
  if (t == 0 && atomicAdd(&done, 1u) + 1 == gridDim.x) {
    atomicExch(&done, 0u);
    atomicExch(&launched, 1u);
  }
}
