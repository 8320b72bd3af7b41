// Lane 0 publishes a value, and the others read it without meeting lane 0 in between.
// launch: grid=1 block=64 args=i32*64:iota,i32*64:zeros
extern "C" __global__ void bug(const int* x, int* y) {
  __shared__ int value[2];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (lane == 0) value[warp] = x[warp];     // FINDS race
  y[threadIdx.x] = value[warp];             // FINDS race init
}
