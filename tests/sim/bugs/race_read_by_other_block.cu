// Every block reads the first word of all blocks, then, after a barrier of its own, writes its row.
// launch: grid=3 block=64 args=f32*192:iota,f32*192:zeros
extern "C" __global__ void bug(float* x, float* y) {
  int i = threadIdx.x, first = blockIdx.x * 64;
  float sum = 0;
  if (i < 3) sum = x[i * 64];                      // FINDS race
  __syncthreads();
  x[first + i] = -1;                               // FINDS race
  y[first + i] = sum;
}
