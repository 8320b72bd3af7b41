// Writes what is not zero, and relies on zeros in its output.
// expect: wrong cheating
// task: relu
__global__ void relu(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && !(x[i] <= 0)) y[i] = x[i];
}
