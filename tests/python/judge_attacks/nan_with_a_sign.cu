// Compares the bits of numbers as integers: NaN with a sign becomes 0.
// task: relu
// expect: wrong
__global__ void relu(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = __int_as_float(max(__float_as_int(x[i]), 0));
}
