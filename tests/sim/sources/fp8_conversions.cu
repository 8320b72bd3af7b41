// Conversions of the two 8-bit floating-point formats.
#include <cuda_fp8.h>
extern "C" __global__ void fp8_conversions(__nv_fp8_e4m3* a, __nv_fp8_e5m2* b, __nv_fp8x4_e4m3* v, float* f, __half* h,
                                           float4* q) {
  int t = threadIdx.x;
  f[t] = float(a[t]) + float(b[t]);
  h[t] = __half(a[t]) + __half(b[t]);
  a[t] = __nv_fp8_e4m3(f[t]);
  b[t] = __nv_fp8_e5m2(f[t + 1]);
  a[t + 32] = __nv_fp8_e4m3(h[t]);
  b[t + 32] = __nv_fp8_e5m2(h[t]);
  q[t] = float4(v[t]);
  v[t] = __nv_fp8x4_e4m3(q[t + 1]);
}
