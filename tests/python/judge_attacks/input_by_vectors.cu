// Writes four floats of its const input at once, and puts them back.
// expect: cheating
// also: finding
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n / 4) {
    float4* four = reinterpret_cast<float4*>(const_cast<float*>(x)) + i;
    float4 kept = *four;
    *reinterpret_cast<volatile float*>(&four->w) = 1;
    *four = kept;
  }
  if (i < n) y[i] = 2 * x[i] + 1;
}
