// Writes to the first array what belongs into the second.
// expect: wrong
// task: minmax
__global__ void minmax(const int* x, int* low, int* high, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    atomicMin(low, x[i]);
    atomicMax(low, x[i]);
  }
}
