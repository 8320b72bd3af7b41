// Two-dimensional convolution and a grid-wide counter.
__device__ unsigned done;
extern "C" __global__ void convolve(const float* x, const float* k, float* y, int w, int h) {
  int cx = blockIdx.x * blockDim.x + threadIdx.x, cy = blockIdx.y * blockDim.y + threadIdx.y;
  float sum = 0;
  for (int dy = -2; dy <= 2; ++dy)
    for (int dx = -2; dx <= 2; ++dx) {
      int px = min(max(cx + dx, 0), w - 1), py = min(max(cy + dy, 0), h - 1);
      sum += x[py * w + px] * k[(dy + 2) * 5 + dx + 2];
    }
  if (cx < w && cy < h) y[cy * w + cx] = sum;
  __shared__ bool last;
  __threadfence();
  if (threadIdx.x == 0 && threadIdx.y == 0) last = atomicAdd(&done, 1) == gridDim.x * gridDim.y - 1;
  __syncthreads();
  if (last) y[0] = -1.0f;
}
