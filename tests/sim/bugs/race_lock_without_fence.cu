// A spin lock whose critical section is not fenced.
// launch: grid=4 block=32 cooperative args=i32*1:zeros,i32*1:zeros
extern "C" __global__ void bug(int* lock, int* sum) {
  if (threadIdx.x == 0) {
    while (atomicCAS(lock, 0, 1) != 0) {}
    sum[0] += 1;                            // FINDS race
    atomicExch(lock, 0);
  }
}
