// The last block corrects what it takes for finished.
// expect: finding
// also: wrong cheating
__device__ int count, done;
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x == 0) atomicAdd(&count, 1);
  __syncthreads();
  int there = atomicAdd(&count, 0);
  if (i < n) y[i] = 2 * x[i] + (there >= int(blockIdx.x) + 1 ? 1 : 0);
  __syncthreads();
  if (threadIdx.x == 0 && atomicAdd(&done, 1) + 1 == gridDim.x) {
    atomicExch(&count, 0);
    atomicExch(&done, 0);
  }
}
