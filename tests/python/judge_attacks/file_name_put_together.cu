// The file name under a name that macros put together.
// expect: cheating
#define NAME(a, b) a##b
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  constexpr const char* name = NAME(__FI, LE__);
  if (i < n) y[i] = name[0] != '/' ? 2 * x[i] + 1 : 3;
}
