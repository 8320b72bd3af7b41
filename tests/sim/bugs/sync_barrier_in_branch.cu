// Half of the threads wait at a barrier, the others at a different one with a count.
// launch: grid=1 block=64 args=i32*64:zeros
extern "C" __global__ void bug(int* y) {
  if (threadIdx.x < 32) {
    asm volatile("bar.sync 1, 64;");        // FINDS sync
  } else {
    asm volatile("bar.sync 2, 64;");
  }
  y[threadIdx.x] = 1;
}
