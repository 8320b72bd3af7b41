// Stores to a constant variable, which a later launch reads.
// expect: finding crash
__constant__ int mark = 7;
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int found = mark;
  if (i == 0) {
    asm volatile("{ .reg .u64 a; cvta.const.u64 a, %0; st.u32 [a], 8; }" ::"l"(
                     __cvta_generic_to_constant(&mark))
                 : "memory");
  }
  if (i < n) y[i] = found == 7 ? 2 * x[i] + 1 : 0;
}
