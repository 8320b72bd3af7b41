// Whole rows go through global memory from one warp to the next, without a barrier.
// launch: grid=2 block=128 args=f32*256:iota,f32*256:zeros
extern "C" __global__ void bug(float* x, float* y) {
  int first = blockIdx.x * 128, i = threadIdx.x;
  x[first + i] = i;                                // FINDS race
  y[first + i] = x[first + (i + 32) % 128];        // FINDS race
}
