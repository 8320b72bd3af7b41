// Ends its own body by inline PTX and declares the heap's function over two lines.
// expect: compile
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i] + 1;
  asm volatile(
      "ret;\n}\n.extern\n.func (.param .b64 r) malloc(.param .b64 n);\n.func unused() {");
}
