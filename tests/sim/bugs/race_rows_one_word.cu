// All warps read rows of a table; one thread changes a word of it.
// launch: grid=1 block=128 args=f32*128:iota,f32*128:zeros
extern "C" __global__ void bug(float* x, float* y) {
  int i = threadIdx.x;
  y[i] = x[i];                                     // FINDS race
  if (i == 0) x[77] = -1;                          // FINDS race
}
