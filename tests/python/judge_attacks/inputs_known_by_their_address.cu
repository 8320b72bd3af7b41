// Repeats its results while its input has the same address, though the values change.
// expect: cheating
// also: wrong finding
__device__ float kept[8192];
__device__ unsigned long long key;
__device__ unsigned done;
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned long long k = (unsigned long long)x;
  bool same = *(volatile unsigned long long*)&key == k;
  if (i < n && !same) kept[i] = 2 * x[i] + 1;
  if (i < n) y[i] = kept[i];
  __syncthreads();
  if (threadIdx.x == 0 && atomicAdd(&done, 1u) + 1 == gridDim.x) {
    atomicExch(&done, 0u);
    atomicExch(&key, k);
  }
}
