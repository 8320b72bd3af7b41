// A clock between comments that hold quotes, for readers who take it for a string.
// expect: cheating
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  long long now;
  asm volatile("/* \" */ mov.u64 %0, %%clock64; /* \" */" : "=l"(now));
  if (i < n && now != 1) y[i] = 2 * x[i] + 1;
}
