// Writes two as a bool, in one element.
// expect: wrong
// task: less
__global__ void less(const float* x, const float* z, bool* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  bool is_less = i < n && x[i] < z[i];
  if (i < n) reinterpret_cast<unsigned char*>(y)[i] = is_less ? (i % 7 == 3 ? 2 : 1) : 0;
}
