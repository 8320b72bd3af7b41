// The time of the compile, pasted by a macro of CUDA's headers.
// expect: cheating
// also: compile
#include <cuda/std/type_traits>
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i] + 1 + (_CCCL_PP_CAT(__TI, ME__)[7] == 'x');
}
