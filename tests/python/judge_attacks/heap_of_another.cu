// Reads memory of the heap before it wrote it.
// expect: finding
// task: heap
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int* p = static_cast<int*>(malloc(64));
  int left = p != nullptr ? p[3] : 0;
  free(p);
  if (i < n) y[i] = left == 7 ? 0 : 2 * x[i] + 1;
}
