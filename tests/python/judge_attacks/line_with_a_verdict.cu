// A file name that is a better verdict.
// expect: compile
#line 1 "kernel.cu: accepted"
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = zz;
}
