// Groups of eight lanes exchange through shared memory without a sync() of the group.
// launch: grid=1 block=64 args=i32*64:iota,i32*64:zeros
#include <cooperative_groups.h>
extern "C" __global__ void bug(const int* x, int* y) {
  __shared__ int s[64];
  auto tile = cooperative_groups::tiled_partition<8>(cooperative_groups::this_thread_block());
  int i = threadIdx.x, first = i - tile.thread_rank();
  s[i] = x[i];  // FINDS race
#ifdef FIXED
  tile.sync();
#endif
  y[i] = s[first + 7 - tile.thread_rank()];  // FINDS race
}
