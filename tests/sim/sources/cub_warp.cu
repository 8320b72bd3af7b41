// Warp primitives of CUB.
#include <cub/warp/warp_reduce.cuh>
#include <cub/warp/warp_scan.cuh>
extern "C" __global__ void cub_warp(int* x, double* d) {
  __shared__ typename cub::WarpReduce<double>::TempStorage a[4];
  __shared__ typename cub::WarpScan<int>::TempStorage b[4];
  int warp = threadIdx.x / 32, v;
  double sum = cub::WarpReduce<double>(a[warp]).Sum(d[threadIdx.x]);
  cub::WarpScan<int>(b[warp]).InclusiveSum(x[threadIdx.x], v);
  x[threadIdx.x] = v;
  __syncthreads();
  if (threadIdx.x % 32 == 0) d[warp] = sum;
}
