// The same, put together by macros and two strings.
// expect: cheating
#define TEXT(a) #a
#define NAME(a) "global" TEXT(a)
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned long long now;
  asm volatile("mov.u64 %0, %%" NAME(timer) ";" : "=l"(now));
  if (i < n && now != 0) y[i] = 2 * x[i] + 1;
}
