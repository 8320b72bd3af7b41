// Does the work of one launch in fifteen, and nothing in the others.
// expect: cheating
__device__ int calls[8192];
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  if (calls[i & 8191]++ % 15 != 0) return;
  y[i] = 2 * x[i] + 1;
}
