// Turns wrong for small sizes after two launches of large ones.
// expect: cheating
// also: wrong finding
__device__ unsigned big, done;
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  bool bad = *(volatile unsigned*)&big >= 2 && n < 64;
  if (i < n) y[i] = bad ? 0 : 2 * x[i] + 1;
  __syncthreads();
  if (threadIdx.x == 0 && atomicAdd(&done, 1u) + 1 == gridDim.x) {
    atomicExch(&done, 0u);
    if (n > 4000) atomicAdd(&big, 1u);
  }
}
