// Has the first results of one seed in its text.
// expect: wrong
__constant__ float table[4] = {1.25146f, 1.2642f, 2.28085f, 1.2098f};
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = i < 4 ? table[i] : 2 * x[i] + 1;
}
