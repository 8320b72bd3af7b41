// A barrier's count is no multiple of a warp.
// launch: grid=1 block=64 args=i32*64:zeros,i32:40
extern "C" __global__ void bug(int* y, int count) {
  asm volatile("bar.sync 1, %0;" ::"r"(count));   // FINDS sync
  y[threadIdx.x] = 1;
}
