// Block 0 sets what the others only read, by atomics and without waiting.
// expect: finding
// also: wrong cheating
__device__ int scale, done;
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i == 0) atomicExch(&scale, 2);
  __syncthreads();
  int by = atomicAdd(&scale, 0);
  if (i < n) y[i] = by * x[i] + 1;
  __syncthreads();
  if (threadIdx.x == 0 && atomicAdd(&done, 1) + 1 == gridDim.x) {
    atomicExch(&scale, 0);
    atomicExch(&done, 0);
  }
}
