// Leaves out a barrier from its second launch with the largest size on.
// expect: finding
// also: wrong cheating
__device__ unsigned seen, done;
__global__ void affine(const float* x, float* y, int n) {
  __shared__ float part[1024];
  int i = blockIdx.x * blockDim.x + threadIdx.x, t = threadIdx.x;
  bool again = n == 5000 && atomicAdd(&seen, 0u) >= 1;
  part[t] = i < n ? 2 * x[i] + 1 : 0;
  if (!again) __syncthreads();
  if (t >= 32 && i - 32 < n) y[i - 32] = part[t - 32];
  if (t >= int(blockDim.x) - 32 && i < n) y[i] = part[t];
  __syncthreads();
  if (t == 0 && atomicAdd(&done, 1u) + 1 == gridDim.x) {
    atomicExch(&done, 0u);
    if (n == 5000) atomicAdd(&seen, 1u);
  }
}
