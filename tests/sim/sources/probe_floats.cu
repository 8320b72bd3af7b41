// Every rounding, approximation and conversion of single and double precision.
#define KERNEL(name) extern "C" __global__ void name
KERNEL(f32_rounded)(float* f) {
  int t = threadIdx.x;
  float a = f[t], b = f[t + 32], c = f[t + 64], r = 0;
#define ALL(m) r += __fadd_##m(a, b) + __fsub_##m(a, c) + __fmul_##m(b, c) + __fmaf_##m(a, b, c) + __fdiv_##m(a, b) + __frcp_##m(c) + __fsqrt_##m(b);
  ALL(rn) ALL(rz) ALL(rd) ALL(ru)
#undef ALL
  f[t] = r + __frsqrt_rn(a) + __fmaf_ieee_rn(a, b, c) + __saturatef(a) + __fmul_rn(a, b);
}
KERNEL(f64_rounded)(double* f) {
  int t = threadIdx.x;
  double a = f[t], b = f[t + 32], c = f[t + 64], r = 0;
#define ALL(m) r += __dadd_##m(a, b) + __dsub_##m(a, c) + __dmul_##m(b, c) + __fma_##m(a, b, c) + __ddiv_##m(a, b) + __drcp_##m(c) + __dsqrt_##m(b);
  ALL(rn) ALL(rz) ALL(rd) ALL(ru)
#undef ALL
  f[t] = r;
}
KERNEL(f32_fast)(float* f) {
  int t = threadIdx.x;
  float a = f[t], b = f[t + 32], s, c;
  __sincosf(a, &s, &c);
  f[t] = s + c + __sinf(a) + __cosf(b) + __tanf(a) + __expf(a) + __exp10f(b) + __logf(a) + __log2f(b) + __log10f(a) + __powf(a, b) + __fdividef(a, b);
}
KERNEL(f32_inline)(float* f) {
  int t = threadIdx.x;
  float r = f[t], a = f[t + 32];
  asm("ex2.approx.ftz.f32 %0, %0; lg2.approx.f32 %0, %0; rcp.approx.ftz.f32 %0, %0; rsqrt.approx.f32 %0, %0;" : "+f"(r));
  asm("sqrt.approx.ftz.f32 %0, %0; sin.approx.ftz.f32 %0, %0; cos.approx.f32 %0, %0; tanh.approx.f32 %0, %0;" : "+f"(r));
  asm("div.full.ftz.f32 %0, %0, %1; div.approx.f32 %0, %0, %1; copysign.f32 %0, %0, %1;" : "+f"(r) : "f"(a));
  asm("fma.rp.ftz.sat.f32 %0, %0, %1, %1; mul.rm.sat.f32 %0, %0, %1; add.rz.ftz.f32 %0, %0, %1;" : "+f"(r) : "f"(a));
  f[t] = r;
}
KERNEL(f32_extrema)(float* f) {
  int t = threadIdx.x;
  float r = f[t], a = f[t + 32];
  asm("min.ftz.f32 %0, %0, %1; max.f32 %0, %0, %1; abs.ftz.f32 %0, %0; neg.f32 %0, %0;" : "+f"(r) : "f"(a));
#if __CUDA_ARCH__ >= 860
  asm("min.NaN.xorsign.abs.f32 %0, %0, %1;" : "+f"(r) : "f"(a));
#endif
#if __CUDA_ARCH__ >= 800
  asm("max.NaN.f32 %0, %0, %1;" : "+f"(r) : "f"(a));
#endif
  asm("{ .reg .pred p, q; testp.subnormal.f32 p, %1; testp.finite.f32 q, %0; and.pred p, p, q; selp.f32 %0, %0, %1, p; }" : "+f"(r) : "f"(a));
  asm("slct.ftz.f32.f32 %0, %0, %1, %1; set.nan.f32.f32 %0, %0, %1;" : "+f"(r) : "f"(a));
  f[t] = r;
}
KERNEL(f64_inline)(double* d) {
  int t = threadIdx.x;
  double r = d[t], a = d[t + 32];
  asm("rcp.approx.ftz.f64 %0, %0; rsqrt.approx.f64 %0, %0; rsqrt.approx.ftz.f64 %0, %0; mad.rn.f64 %0, %0, %1, %1;" : "+d"(r) : "d"(a));
  asm("fma.rm.f64 %0, %0, %1, %1; min.f64 %0, %0, %1; copysign.f64 %0, %1, %0; abs.f64 %0, %0; neg.f64 %0, %0;" : "+d"(r) : "d"(a));
  d[t] = r;
}
KERNEL(cvt_rounded)(float* f, double* d, int* s, unsigned* u, long long* l, unsigned long long* v) {
  int t = threadIdx.x;
#define ALL(m)                                                                                          \
  s[t] += __float2int_##m(f[t]) + __double2int_##m(d[t]);                                               \
  u[t] += __float2uint_##m(f[t]) + __double2uint_##m(d[t]);                                             \
  l[t] += __float2ll_##m(f[t]) + __double2ll_##m(d[t]);                                                 \
  v[t] += __float2ull_##m(f[t]) + __double2ull_##m(d[t]);                                               \
  f[t] += __int2float_##m(s[t]) + __uint2float_##m(u[t]) + __ll2float_##m(l[t]) + __ull2float_##m(v[t]) + __double2float_##m(d[t]); \
  d[t] += __ll2double_##m(l[t]) + __ull2double_##m(v[t]);
  ALL(rn) ALL(rz) ALL(rd) ALL(ru)
#undef ALL
  d[t] += __int2double_rn(s[t]) + __uint2double_rn(u[t]);
}
KERNEL(cvt_small)(signed char* c, unsigned char* b, short* h, unsigned short* k, float* f, double* d) {
  int t = threadIdx.x;
  c[t] = (signed char)f[t] + (signed char)d[t];
  b[t] = (unsigned char)f[t] + (unsigned char)h[t];
  h[t] = (short)d[t] + c[t];
  k[t] = (unsigned short)f[t] + b[t];
  f[t] = c[t] + (float)b[t] * h[t] - k[t];
  d[t] = c[t] * (double)k[t];
}
KERNEL(cvt_round_to_integer)(float* f, double* d) {
  int t = threadIdx.x;
  f[t] = floorf(f[t]) + ceilf(f[t + 1]) + truncf(f[t + 2]) + rintf(f[t + 3]) + roundf(f[t + 4]) + nearbyintf(f[t + 5]);
  d[t] = floor(d[t]) + ceil(d[t + 1]) + trunc(d[t + 2]) + rint(d[t + 3]) + round(d[t + 4]) + nearbyint(d[t + 5]);
  asm("cvt.rpi.ftz.sat.f32.f32 %0, %0; cvt.rni.f64.f64 %1, %1; cvt.ftz.f64.f32 %1, %0; cvt.rz.ftz.f32.f64 %0, %1;" : "+f"(f[t]), "+d"(d[t]));
}
KERNEL(bits_of_floats)(float* f, double* d, int* s, long long* l) {
  int t = threadIdx.x;
  s[t] = __float_as_int(f[t]) + __double2hiint(d[t]) + __double2loint(d[t]) + isnan(f[t]) + isinf(d[t]) + signbit(d[t]) + isfinite(f[t]);
  l[t] = __double_as_longlong(d[t]);
  f[t] = __int_as_float(s[t + 1]) + __uint_as_float(s[t + 2]);
  d[t] = __longlong_as_double(l[t + 1]) + __hiloint2double(s[t], s[t + 1]);
}
