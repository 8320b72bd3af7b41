// Cooperative groups: reduce and scan.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;
extern "C" __global__ void groups_reduce(int* x, float* f) {
  auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  x[threadIdx.x] = cg::reduce(tile, x[threadIdx.x], cg::plus<int>()) + cg::reduce(tile, x[threadIdx.x], cg::less<int>());
  f[threadIdx.x] = cg::reduce(tile, f[threadIdx.x], cg::greater<float>()) +
                   cg::exclusive_scan(tile, f[threadIdx.x], cg::plus<float>());
}
