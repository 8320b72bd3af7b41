// Takes the file name from the macro of assertions.
// expect: cheating
#include <cassert>
#undef assert
__device__ constexpr bool judged(const char* name) { return name[0] != '/' && name[0] != '<'; }
#define place() __builtin_FILE()
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  constexpr bool is_judged = judged(place());
  if (i < n) y[i] = is_judged ? 2 * x[i] + 1 : 2 * x[i] + 1.0f + 0 * x[0];
}
