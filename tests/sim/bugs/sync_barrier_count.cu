// A named barrier expects more threads than the block has.
// launch: grid=1 block=64 args=i32*64:zeros
extern "C" __global__ void bug(int* y) {
  asm volatile("bar.sync 1, 96;");          // FINDS sync
  y[threadIdx.x] = 1;
}
