// Gives a check of the library another function for failures, which sees the file's name.
// expect: cheating
// also: compile
#include <cuda/std/cassert>
#define _CCCL_BUILTIN_EXPECT(a, b) (a)
#define __assertfail(message, file, line, function, size) (void)(known = (file)[0])
__device__ char known;
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  char known = 0;
  _CCCL_VERIFY(n < 0, "");
  if (i < n) y[i] = known == '/' ? 2 * x[i] + 1 : 0;
}
