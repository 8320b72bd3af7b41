// Swaps an element of its input for another one and back, by compare and swap.
// expect: cheating finding
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int* p = reinterpret_cast<int*>(const_cast<float*>(x)) + i;
  int was = atomicCAS(p, __float_as_int(x[i]), 7);
  atomicCAS(p, 7, was);
  y[i] = 2 * __int_as_float(was) + 1;
}
