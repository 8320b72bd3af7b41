// Atomic additions to counters that start with anything.
// launch: grid=2 block=64 args=i32*4:raw
extern "C" __global__ void bug(int* count) {
  atomicAdd(&count[threadIdx.x % 4], 1);    // FINDS init
}
