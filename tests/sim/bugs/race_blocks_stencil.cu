// A stencil that updates in place: a block reads its neighbour's edge while that one writes it.
// launch: grid=4 block=32 args=f32*130:iota
extern "C" __global__ void bug(float* x) {
  int i = blockIdx.x * 32 + threadIdx.x + 1;
  float v = 0.5f * x[i - 1] + 0.5f * x[i + 1];   // FINDS race
  __syncthreads();
  x[i] = v;                                      // FINDS race
}
