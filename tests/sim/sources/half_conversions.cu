// Conversions between half, float, double and integers.
#include <cuda_fp16.h>
extern "C" __global__ void half_conversions(__half* h, float* f, double* d, int* i, long long* l, short* s,
                                            unsigned char* c, __half2* v) {
  int t = threadIdx.x;
  i[t] = __half2int_rn(h[t]) + __half2int_rz(h[t]) + __half2uint_ru(h[t]) + __half2short_rd(h[t]) + (int)h[t];
  l[t] = __half2ll_rn(h[t]) + __half2ull_rz(h[t]);
  f[t] = __half2float(h[t]) + __low2float(v[t]) + __high2float(v[t]);
  h[t] = __float2half_rn(f[t]) + __float2half_rz(f[t]) + __float2half_ru(f[t]) + __float2half_rd(f[t]) +
         __double2half(d[t]) + __int2half_rn(i[t]) + __uint2half_rz(i[t]) + __ll2half_ru(l[t]) + __short2half_rn(s[t]) +
         __ushort2half_rd(s[t]) + (__half)c[t];
  v[t] = __floats2half2_rn(f[t], f[t + 1]) + __float22half2_rn(make_float2(f[t], f[t]));
  s[t] = __half_as_short(h[t]) + __half2ushort_rn(h[t]);
  c[t] = (unsigned char)h[t] + (signed char)h[t];
}
