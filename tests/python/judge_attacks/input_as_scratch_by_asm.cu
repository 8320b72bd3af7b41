// Uses its const input as scratch through inline PTX, and restores it.
// expect: cheating
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float kept = x[i];
  asm volatile("st.global.f32 [%0], %1;" ::"l"(x + i), "f"(0.0f) : "memory");
  y[i] = 2 * kept + 1;
  asm volatile("st.global.f32 [%0], %1;" ::"l"(x + i), "f"(kept) : "memory");
}
