// Sum of an array with shuffles of every kind.
extern "C" __global__ void reduce_shuffle(const float* x, float* out, int n) {
  __shared__ float partial[32];
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += x[i];
  for (int d = 16; d; d >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, d);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x < 32) {
    sum = threadIdx.x < blockDim.x / 32 ? partial[threadIdx.x] : 0.0f;
    for (int d = 16; d; d >>= 1) sum += __shfl_down_sync(~0u, sum, d);
    if (threadIdx.x == 0) atomicAdd(out, sum);
  }
}

extern "C" __global__ void scan_shuffle(const int* x, int* out, double* wide, long long* pairs) {
  int v = x[threadIdx.x], lane = threadIdx.x & 31;
  for (int d = 1; d < 32; d *= 2) {
    int u = __shfl_up_sync(~0u, v, d);
    if (lane >= d) v += u;
  }
  out[threadIdx.x] = v;
  wide[threadIdx.x] = __shfl_sync(~0u, wide[threadIdx.x], 3, 16);
  pairs[threadIdx.x] = __shfl_xor_sync(~0u, pairs[threadIdx.x], 1);
}
