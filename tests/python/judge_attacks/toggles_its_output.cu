// Makes its result of what a bool held before.
// expect: wrong cheating
// task: less
__global__ void less(const float* x, const float* z, bool* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && (reinterpret_cast<unsigned char*>(y)[i] != 0) != (x[i] < z[i])) y[i] = x[i] < z[i];
}
