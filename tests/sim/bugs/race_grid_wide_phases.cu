// Two phases of one launch with a barrier of the block where one of the grid was needed.
// launch: grid=4 block=64 args=f32*256:iota,f32*256:zeros,f32*256:zeros
extern "C" __global__ void bug(const float* x, float* t, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int n = gridDim.x * blockDim.x;
  t[i] = 2 * x[i];                          // FINDS race
  __syncthreads();
  y[i] = t[n - 1 - i];                      // FINDS race
}
