// Arithmetic, comparisons and functions of __half and __half2.
#include <cuda_fp16.h>
extern "C" __global__ void half_math(__half* h, __half2* v, int* out) {
  int t = threadIdx.x;
  __half a = h[t], b = h[t + 32];
  __half2 p = v[t], q = v[t + 32];
  out[t] = __heq(a, b) + __hlt(a, b) + __hgtu(a, b) + __hbeq2(p, q) + __hbltu2(p, q) + __hisnan(a) + __hisinf(b);
  h[t] = a + b * a - a / b;
  h[t] += __hfma(a, b, a) + __hadd_sat(a, b) + __hmul_sat(a, b) + __hfma_relu(a, b, a) + __habs(a) + __hneg(b) +
          __hmin(a, b) + __hmax_nan(a, b) + hexp(a) + hexp2(b) + hlog(a) + hsin(a) + hsqrt(b) + hrcp(a) + htanh(b) +
          hfloor(a) + hceil(b) + hrint(a) + htrunc(b);
  v[t] = __hadd2(p, q);
  v[t] = __hfma2(v[t], p, q) + __hmul2_sat(p, q) + __hmin2(p, q) + __hmax2_nan(p, q) + __habs2(p) + __hneg2(q) +
         h2exp2(p) + h2rcp(q) + __heq2(p, q) + __hge2(p, q) + __hfma2_relu(p, q, p) + __lowhigh2highlow(p) + __h2div(p, q);
}
