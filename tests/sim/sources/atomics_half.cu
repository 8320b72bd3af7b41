// Atomic additions of half and bfloat16.
#include <cuda_fp16.h>
#include <cuda_bf16.h>
extern "C" __global__ void atomics_half(__half* h, __half2* h2, __nv_bfloat16* b, __nv_bfloat162* b2) {
  h[threadIdx.x + 1] = atomicAdd(h, __float2half(1.0f));
  h2[threadIdx.x + 1] = atomicAdd(h2, __float2half2_rn(1.0f));
  b[threadIdx.x + 1] = atomicAdd(b, __float2bfloat16(1.0f));
  b2[threadIdx.x + 1] = atomicAdd(b2, __float2bfloat162_rn(1.0f));
}
