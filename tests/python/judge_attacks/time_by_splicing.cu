// Makes the time of the compile by a macro of the library that splices.
// expect: cheating
#include <cuda/std/__cccl/preprocessor.h>
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = _CCCL_PP_SPLICE_WITH(ME, __TI, __)[7] != 'x' ? 2 * x[i] + 1 : 0;
}
