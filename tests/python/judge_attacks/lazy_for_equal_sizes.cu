// Does nothing where the launch before had the same size.
// expect: cheating
// also: wrong
__device__ int before;
__device__ unsigned arrived;
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int last = atomicAdd(&before, 0);
  if (i < n && last != n) y[i] = 2 * x[i] + 1;
  __syncthreads();
  if (threadIdx.x == 0 && atomicAdd(&arrived, 1u) == gridDim.x - 1) {
    atomicExch(&arrived, 0u);
    atomicExch(&before, n);
  }
}
