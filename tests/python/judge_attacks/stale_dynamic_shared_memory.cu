// Asks for shared memory and reads what another block left there.
// expect: finding
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  extern __shared__ float stale[];
  if (i < n) y[i] = stale[threadIdx.x];
}
