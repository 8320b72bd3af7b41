// Arithmetic and conversions of __nv_bfloat16.
#include <cuda_bf16.h>
extern "C" __global__ void bfloat16_math(__nv_bfloat16* h, __nv_bfloat162* v, float* f, double* d, int* i) {
  int t = threadIdx.x;
  __nv_bfloat16 a = h[t], b = h[t + 32];
  __nv_bfloat162 p = v[t], q = v[t + 32];
  i[t] = __heq(a, b) + __hlt(a, b) + __hbeq2(p, q) + __hisnan(a) + __bfloat162int_rn(a) + (int)b + __bfloat162ll_rz(a);
  h[t] = a + b * a - a / b;
  h[t] += __hfma(a, b, a) + __hfma_relu(a, b, a) + __habs(a) + __hneg(b) + __hmin(a, b) + __hmax_nan(a, b) + hexp(a) +
          hsqrt(b) + htanh(a) + __float2bfloat16_rz(f[t]) + __float2bfloat16_ru(f[t]) + __double2bfloat16(d[t]) +
          __int2bfloat16_rn(i[t]);
  v[t] = __hadd2(p, q);
  v[t] = __hfma2(v[t], p, q) + __hmul2(p, q) + __hmin2(p, q) + __habs2(p) + __hneg2(q) +
         __floats2bfloat162_rn(f[t], f[t + 1]) + __hgt2(p, q);
  f[t] = __bfloat162float(a) + __low2float(p);
}
