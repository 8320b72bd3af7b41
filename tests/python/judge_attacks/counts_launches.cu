// Works in the first launches only: counts them in device memory.
// expect: cheating
__device__ unsigned threads;
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (atomicAdd(&threads, 1u) > 12000u) return;
  if (i < n) y[i] = 2 * x[i] + 1;
}
