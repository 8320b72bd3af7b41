// Is another program where its file has another name.
// expect: cheating
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  constexpr bool is_judged = __FILE__[0] != '/';
  if (i < n) y[i] = is_judged ? 2 * x[i] + 1 : 0;
}
