// Sums without atomics, which goes well most of the time.
// expect: finding
// task: total
// also: wrong
__global__ void total(const int* x, int* sum, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) *sum = *sum + x[i];
}
