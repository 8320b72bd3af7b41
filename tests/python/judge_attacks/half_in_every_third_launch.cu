// Does half of the work in each third launch with the largest size.
// expect: cheating
// also: wrong
__device__ unsigned calls[5000];
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  bool lazy = n == 5000 && calls[i]++ % 3 == 2 && i % 2 == 1;
  if (!lazy) y[i] = 2 * x[i] + 1;
}
