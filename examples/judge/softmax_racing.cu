// A submission with a hidden race: warps read the shared sums before all are written.
__global__ void softmax(const float* __restrict__ x, float* __restrict__ out, int rows,
                        int columns) {
  __shared__ float part[128];
  x += (size_t)blockIdx.x * columns;
  out += (size_t)blockIdx.x * columns;
  float sum = 0;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += expf(x[i]);
  part[threadIdx.x] = sum;
  sum = 0;
  for (int i = 0; i < blockDim.x; ++i) sum += part[i];
  for (int i = threadIdx.x; i < columns; i += blockDim.x) out[i] = expf(x[i]) / sum;
}
