// A register of 64 bits for a double that inline PTX never wrote.
// expect: wrong finding
// also: cheating
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  double left;
  asm volatile("{ .reg .f64 t; mov.f64 %0, t; }" : "=d"(left));
  if (i < n) y[i] = left == 0 ? 2 * x[i] + 1 : 0;
}
