// One warp of a block fills a tile and raises a volatile flag, another spins on it: no fence.
// launch: grid=1 block=64 args=i32*32:iota,i32*32:zeros
extern "C" __global__ void bug(const int* x, int* y) {
  __shared__ int tile[32];
  __shared__ volatile int ready;
  int lane = threadIdx.x % 32;
  if (threadIdx.x == 0) ready = 0;
  __syncthreads();
  if (threadIdx.x < 32) {
    tile[lane] = x[lane];  // FINDS race
    __syncwarp();
#ifdef FIXED
    __threadfence_block();
#endif
    if (lane == 0) ready = 1;
  } else {
    while (ready == 0) {}
#ifdef FIXED
    __threadfence_block();
#endif
    y[lane] = tile[31 - lane];  // FINDS race
  }
}
