// A null pointer is written.
// launch: grid=1 block=32 args=i32*32:zeros,u64:0
extern "C" __global__ void bug(int* y, int* p) {
  p[threadIdx.x] = y[threadIdx.x];          // FINDS bounds
}
