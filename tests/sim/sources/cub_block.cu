// Block primitives of CUB: reduce, scan, radix sort.
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
extern "C" __global__ void cub_block(int* x, float* f) {
  using Reduce = cub::BlockReduce<float, 128>;
  using Scan = cub::BlockScan<int, 128>;
  using Sort = cub::BlockRadixSort<int, 128, 1>;
  __shared__ union {
    typename Reduce::TempStorage reduce;
    typename Scan::TempStorage scan;
    typename Sort::TempStorage sort;
  } storage;
  float sum = Reduce(storage.reduce).Sum(f[threadIdx.x]);
  __syncthreads();
  int v = x[threadIdx.x], total;
  Scan(storage.scan).ExclusiveSum(v, v, total);
  __syncthreads();
  int keys[1] = {x[threadIdx.x]};
  Sort(storage.sort).Sort(keys);
  x[threadIdx.x] = keys[0] + v + total;
  if (threadIdx.x == 0) f[0] = sum;
}
