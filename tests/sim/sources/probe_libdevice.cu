// libdevice in full: every function of single and of double precision.
#define KERNEL(name) extern "C" __global__ void name
KERNEL(lib_f32_one)(float* f) {
  int t = threadIdx.x;
  float a = f[t], r = 0;
  r += acosf(a) + acoshf(a) + asinf(a) + asinhf(a) + atanf(a) + atanhf(a) + cbrtf(a) + cosf(a) + coshf(a) + cospif(a);
  r += cyl_bessel_i0f(a) + cyl_bessel_i1f(a) + erfcf(a) + erfcinvf(a) + erfcxf(a) + erff(a) + erfinvf(a) + expf(a) + exp2f(a);
  r += exp10f(a) + expm1f(a) + fabsf(a) + j0f(a) + j1f(a) + lgammaf(a) + logf(a) + log10f(a) + log1pf(a) + log2f(a) + logbf(a);
  r += normcdff(a) + normcdfinvf(a) + rcbrtf(a) + rsqrtf(a) + sinf(a) + sinhf(a) + sinpif(a) + sqrtf(a) + tanf(a) + tanhf(a);
  f[t] = r + tgammaf(a) + y0f(a) + y1f(a);
}
KERNEL(lib_f32_more)(float* f, int* n) {
  int t = threadIdx.x, e, q;
  float a = f[t], b = f[t + 32], c = f[t + 64], s, o, r = 0;
  sincosf(a, &s, &o);
  r += s + o + atan2f(a, b) + copysignf(a, b) + fdimf(a, b) + fmaf(a, b, c) + fmaxf(a, b) + fminf(a, b) + fmodf(a, b) + hypotf(a, b);
  sincospif(b, &s, &o);
  r += s * o + ilogbf(a) + jnf(n[t], a) + ldexpf(a, n[t]) + llrintf(a) + llroundf(b) + lrintf(a) + lroundf(b) + modff(a, &s) + s;
  r += nextafterf(a, b) + norm3df(a, b, c) + norm4df(a, b, c, a) + normf(4, f) + powf(a, b) + powf(a, (float)n[t]) + remainderf(a, b);
  r += remquof(a, b, &q) + q + rhypotf(a, b) + rnorm3df(a, b, c) + rnorm4df(a, b, c, b) + rnormf(3, f) + scalblnf(a, n[t]) + scalbnf(b, n[t]);
  f[t] = r + frexpf(a, &e) + e + ynf(n[t], b) + fdividef(a, b);
}
KERNEL(lib_f64_one)(double* f) {
  int t = threadIdx.x;
  double a = f[t], r = 0;
  r += acos(a) + acosh(a) + asin(a) + asinh(a) + atan(a) + atanh(a) + cbrt(a) + cos(a) + cosh(a) + cospi(a);
  r += cyl_bessel_i0(a) + cyl_bessel_i1(a) + erfc(a) + erfcinv(a) + erfcx(a) + erf(a) + erfinv(a) + exp(a) + exp2(a);
  r += exp10(a) + expm1(a) + fabs(a) + j0(a) + j1(a) + lgamma(a) + log(a) + log10(a) + log1p(a) + log2(a) + logb(a);
  f[t] = r;
}
KERNEL(lib_f64_two)(double* f) {
  int t = threadIdx.x;
  double a = f[t], r = 0;
  r += normcdf(a) + normcdfinv(a) + rcbrt(a) + rsqrt(a) + sin(a) + sinh(a) + sinpi(a) + sqrt(a) + tan(a) + tanh(a);
  f[t] = r + tgamma(a) + y0(a) + y1(a);
}
KERNEL(lib_f64_more)(double* f, int* n) {
  int t = threadIdx.x, e, q;
  double a = f[t], b = f[t + 32], c = f[t + 64], s, o, r = 0;
  sincos(a, &s, &o);
  r += s + o + atan2(a, b) + copysign(a, b) + fdim(a, b) + fma(a, b, c) + fmax(a, b) + fmin(a, b) + fmod(a, b) + hypot(a, b);
  sincospi(b, &s, &o);
  r += s * o + ilogb(a) + jn(n[t], a) + ldexp(a, n[t]) + llrint(a) + llround(b) + lrint(a) + lround(b) + modf(a, &s) + s;
  r += nextafter(a, b) + norm3d(a, b, c) + norm4d(a, b, c, a) + norm(4, f) + pow(a, b) + pow(a, n[t]) + remainder(a, b);
  r += remquo(a, b, &q) + q + rhypot(a, b) + rnorm3d(a, b, c) + rnorm4d(a, b, c, b) + rnorm(3, f) + scalbln(a, n[t]) + scalbn(b, n[t]);
  f[t] = r + frexp(a, &e) + e + yn(n[t], b);
}
