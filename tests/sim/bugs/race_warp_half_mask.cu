// Both halves of a warp use what both wrote, but each half meets only itself.
// launch: grid=1 block=32 args=i32*32:iota,i32*32:zeros
extern "C" __global__ void bug(const int* x, int* y) {
  __shared__ int s[32];
  int i = threadIdx.x;
  s[i] = x[i];                          // FINDS race
  __syncwarp(i < 16 ? 0x0000ffffu : 0xffff0000u);
  y[i] = s[i ^ 16];                     // FINDS race
}
