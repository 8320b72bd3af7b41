// Remembers its results and repeats them while the first element stays, though others change.
// expect: cheating
// also: wrong finding
__device__ float kept[8192], first;
__device__ unsigned done;
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  bool same = *(volatile float*)&first == x[0];
  if (i < n) {
    if (!same) kept[i] = 2 * x[i] + 1;
    y[i] = kept[i];
  }
  __syncthreads();
  if (threadIdx.x == 0 && atomicAdd(&done, 1u) + 1 == gridDim.x) {
    atomicExch(&done, 0u);
    atomicExch(&first, x[0]);
  }
}
