// Warp 0 waits at a barrier; warp 1 waits for a flag that warp 0 would set behind it.
// launch: grid=1 block=64 args=i32*64:zeros
extern "C" __global__ void bug(int* y) {
  if (threadIdx.x < 32) {
    asm volatile("bar.sync 3, 64;");        // FINDS sync
  } else {
    asm volatile("bar.sync 4, 64;");
    asm volatile("bar.sync 3, 64;");
  }
  y[threadIdx.x] = 1;
}
