// Recursive functions and calls in loops.
__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
__device__ __noinline__ int ackermann(int m, int n) {
  if (m == 0) return n + 1;
  return n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}
extern "C" __global__ void recursion(int* x) {
  x[threadIdx.x] = fibonacci(x[threadIdx.x]) + ackermann(2, threadIdx.x & 3);
}
