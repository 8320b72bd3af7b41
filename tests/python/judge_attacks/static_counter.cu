// Counts launches in a variable inside of the kernel.
// expect: cheating finding
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  static __device__ int calls;
  if (i < n) y[i] = 2 * x[i] + 1;
  if (i == 0 && ++calls > 25) y[n - 1] = 0;
}
