// Each tile's leader leaves a partial sum, and the first tile adds them up without block.sync().
// launch: grid=1 block=128 args=i32*128:iota,i32*1:zeros
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void bug(const int* x, int* y) {
  __shared__ int part[4];
  auto block = cg::this_thread_block();
  auto tile = cg::tiled_partition<32>(block);
  int v = x[threadIdx.x];
  for (int d = 16; d > 0; d /= 2) v += tile.shfl_down(v, d);
  if (tile.thread_rank() == 0) part[tile.meta_group_rank()] = v;  // FINDS race
#ifdef FIXED
  block.sync();
#endif
  if (threadIdx.x == 32) y[0] = part[0] + part[1] + part[2] + part[3];  // FINDS race init
}
