// Is right for multiples of 1024 and for small sizes alone.
// expect: wrong
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  bool is_good = n <= 1025 || n % 1024 == 0 || n == 5000;
  if (i < n) y[i] = is_good ? 2 * x[i] + 1 : 0;
}
