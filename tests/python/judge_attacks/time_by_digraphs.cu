// The time of the compile, pasted by digraphs.
// expect: cheating
%:define NAME(a, b) a%:%:b
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i] + 1 + (NAME(__TI, ME__)[7] == 'x');
}
