// Computes in half precision, which is faster and not what was asked for.
// expect: wrong
#include <cuda_fp16.h>
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  __half one = __float2half(1), two = __float2half(2);
  if (i < n) y[i] = __half2float(__hfma(__float2half(x[i]), two, one));
}
