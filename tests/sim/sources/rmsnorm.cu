// Root-mean-square normalisation of rows.
extern "C" __global__ void rmsnorm(const float* x, const float* w, float* y, int n, float eps) {
  __shared__ float total;
  if (threadIdx.x == 0) total = 0;
  __syncthreads();
  float sum = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += x[blockIdx.x * n + i] * x[blockIdx.x * n + i];
  for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
  if ((threadIdx.x & 31) == 0) atomicAdd(&total, sum);
  __syncthreads();
  float scale = rsqrtf(total / n + eps);
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[blockIdx.x * n + i] = x[blockIdx.x * n + i] * scale * w[i];
}
