// Mean of three neighbours; the ends count twice.
__global__ void blur(const float* in, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float left = in[i > 0 ? i - 1 : 0];
  const float right = in[i + 1 < n ? i + 1 : n - 1];
  out[i] = (left + in[i] + right) / 3.0f;
}
