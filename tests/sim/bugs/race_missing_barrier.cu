// Neighbours exchange through shared memory with no barrier between write and read.
// launch: grid=1 block=128 args=f32*128:iota,f32*128:zeros
extern "C" __global__ void bug(const float* x, float* y) {
  __shared__ float tile[128];
  int i = threadIdx.x;
  tile[i] = x[i];           // FINDS race
  y[i] = tile[i ^ 64];      // FINDS race init
}
