// Cooperative groups: tiles, coalesced groups and block groups.
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void groups_tiles(int* x, int n) {
  cg::thread_block block = cg::this_thread_block();
  cg::thread_block_tile<8> tile = cg::tiled_partition<8>(block);
  int v = x[block.thread_rank()];
  for (int d = 4; d; d /= 2) v += tile.shfl_down(v, d);
  int any = tile.any(v > 3), ballot = tile.ballot(v & 1);
  if (tile.thread_rank() == 0) x[block.thread_rank()] = v + any + ballot;
  block.sync();
  if (v > n) {
    cg::coalesced_group active = cg::coalesced_threads();
    x[threadIdx.x] += active.size() + active.thread_rank() + active.shfl(v, 0);
  }
  tile.sync();
}
