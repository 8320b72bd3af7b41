// Atomics on bins that do not exist.
// launch: grid=1 block=32 args=i32*16:zeros
extern "C" __global__ void bug(int* bins) {
  atomicAdd(&bins[threadIdx.x], 1);         // FINDS bounds
}
