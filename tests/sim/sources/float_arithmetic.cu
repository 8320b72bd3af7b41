// Division, square root and rounding modes in single precision.
extern "C" __global__ void float_arithmetic(float* x, const float* y) {
  int i = threadIdx.x;
  float a = x[i], b = y[i];
  x[i] = a / b + sqrtf(a) + rsqrtf(b) + fmodf(a, b) + 1.0f / a;
  x[i] += __fdividef(a, b) + __fsqrt_rz(a) + __fsqrt_ru(b) + __frcp_rd(a) + __fdiv_ru(a, b) + __fmaf_rz(a, b, a);
  x[i] += __fadd_rz(a, b) + __fadd_ru(a, b) + __fadd_rd(a, b) + __fmul_rz(a, b) + __fmul_ru(a, b) + __fsub_rd(a, b);
  x[i] += copysignf(a, b) + fabsf(a) + fminf(a, b) + fmaxf(a, b) + floorf(a) + ceilf(b) + truncf(a) + rintf(b) +
          roundf(a) + __saturatef(b);
  x[i] += isnan(a) + isinf(b) + isfinite(a) + signbit(b) + (a < b) + (a != b) + (a >= b);
  x[i] += __frsqrt_rn(a) + fdimf(a, b) + remainderf(a, b) + nextafterf(a, b) + ldexpf(a, 3) + ilogbf(b) + hypotf(a, b);
}
