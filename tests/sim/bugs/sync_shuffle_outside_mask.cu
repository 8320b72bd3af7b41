// Neighbours exchange values in a branch; the last of them reads from one who is not in it.
// launch: grid=1 block=32 args=i32*32:iota
extern "C" __global__ void bug(int* y) {
  int v = y[threadIdx.x];
  if (threadIdx.x < 20) {
    int next = __shfl_down_sync(0x000fffffu, v, 1);  // FINDS sync
#ifdef FIXED
    if (threadIdx.x == 19) next = 0;
#endif
    y[threadIdx.x] = next - v;  // FINDS sync
  }
}
