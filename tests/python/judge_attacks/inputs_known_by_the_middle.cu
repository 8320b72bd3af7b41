// Repeats its results while the element in the middle stays, though others change.
// expect: cheating
// also: wrong finding
__device__ float kept[8192], key;
__device__ unsigned done;
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  bool same = *(volatile float*)&key == x[n / 2];
  if (i < n && !same) kept[i] = 2 * x[i] + 1;
  if (i < n) y[i] = kept[i];
  __syncthreads();
  if (threadIdx.x == 0 && atomicAdd(&done, 1u) + 1 == gridDim.x) {
    atomicExch(&done, 0u);
    atomicExch(&key, x[n / 2]);
  }
}
