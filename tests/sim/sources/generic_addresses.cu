// Pointers that may point into any memory.
__device__ __noinline__ int sum(const int* p, int n) {
  int total = 0;
  for (int i = 0; i < n; ++i) total += p[i];
  return total + __isShared(p) + __isGlobal(p) + __isLocal(p) + __isConstant(p);
}
__constant__ int fixed[4] = {1, 2, 3, 4};
extern "C" __global__ void generic_addresses(int* x, int n) {
  __shared__ int shared[4];
  int local[4] = {n, n + 1, n + 2, n + 3};
  if (threadIdx.x < 4) shared[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  const int* p = n & 1 ? shared : n & 2 ? local : fixed;
  x[threadIdx.x] = sum(p, 4) + sum(x, 4) + atomicAdd(n & 4 ? shared : x, 1);
}
