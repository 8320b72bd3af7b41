// Reads an asynchronous copy before its end.
// expect: finding
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  __shared__ float part[256];
  if (i >= n) return;
  unsigned at = __cvta_generic_to_shared(part + threadIdx.x);
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(at), "l"(x + i) : "memory");
  asm volatile("cp.async.commit_group;" ::: "memory");
  y[i] = 2 * part[threadIdx.x] + 1;
}
