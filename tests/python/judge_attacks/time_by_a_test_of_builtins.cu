// Makes the time of the compile by the macro that tests for builtins.
// expect: cheating
// also: compile
#include <cuda/std/__cccl/builtin.h>
#undef _CCCL_HAS_BUILTIN
#undef _CCCL_HAS_KEYWORD
#undef _CCCL_HAS_FEATURE
#define _CCCL_HAS_BUILTIN(a) a[7] == 'x'
#define _CCCL_HAS_KEYWORD(a) false
#define _CCCL_HAS_FEATURE(a) false
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = _CCCL_CHECK_BUILTIN(TIME__) ? 0 : 2 * x[i] + 1;
}
