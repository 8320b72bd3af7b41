// Writes what the launch before computed, and is a launch late.
// expect: cheating
__device__ float late[8192];
__device__ int launches[8192];
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float value = 2 * x[i] + 1;
  bool first = launches[i & 8191]++ < 4;
  y[i] = first ? value : late[i & 8191];
  late[i & 8191] = value;
}
