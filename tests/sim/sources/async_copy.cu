// cp.async through the pipeline primitives and inline PTX.
#include <cuda_pipeline_primitives.h>
extern "C" __global__ void async_copy(const float4* x, float4* y, const float* z, int n) {
  __shared__ float4 buffer[2][128];
  __shared__ float small[128];
  __pipeline_memcpy_async(&buffer[0][threadIdx.x], x + threadIdx.x, 16);
  __pipeline_commit();
  __pipeline_memcpy_async(&buffer[1][threadIdx.x], x + 128 + threadIdx.x, 16, 4);
  __pipeline_memcpy_async(&small[threadIdx.x], z + threadIdx.x, 4);
  __pipeline_commit();
  __pipeline_wait_prior(1);
  __syncthreads();
  float4 v = buffer[0][127 - threadIdx.x];
  __syncthreads();
  __pipeline_wait_prior(0);
  unsigned to = (unsigned)__cvta_generic_to_shared(&buffer[0][threadIdx.x]);
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(x + threadIdx.x), "r"(n));
  asm volatile("cp.async.wait_all;");
  __syncthreads();
  v.x += buffer[1][127 - threadIdx.x].y + small[127 - threadIdx.x] + buffer[0][threadIdx.x].z;
  y[threadIdx.x] = v;
}
