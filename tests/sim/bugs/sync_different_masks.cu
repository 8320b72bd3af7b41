// Lanes that meet pass different masks.
// launch: grid=1 block=32 args=i32*32:iota
extern "C" __global__ void bug(int* y) {
  unsigned mask = threadIdx.x < 16 ? 0xffffffffu : 0xffff00ffu | 1u << threadIdx.x;
  int v = __shfl_xor_sync(mask, y[threadIdx.x], 1);               // FINDS sync
  y[threadIdx.x] = v;
}
