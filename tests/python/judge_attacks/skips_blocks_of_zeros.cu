// Leaves whole blocks as they are whose first outputs are zeros, in large arrays.
// expect: cheating
__global__ void affine(const float* x, float* y, int n) {
  int first = blockIdx.x * blockDim.x, i = first + threadIdx.x;
  __shared__ bool lazy;
  if (threadIdx.x == 0) lazy = n > 2000 && first + 1 < n && y[first] == 0 && y[first + 1] == 0;
  __syncthreads();
  if (i < n && !lazy) y[i] = 2 * x[i] + 1;
}
