// Writes bools of other bytes by words.
// expect: wrong
// task: less
__global__ void less(const float* x, const float* z, bool* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) reinterpret_cast<signed char*>(y)[i] = x[i] < z[i] ? 4 : 0;
}
