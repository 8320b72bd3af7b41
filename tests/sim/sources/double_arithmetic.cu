// Division, square root and rounding modes in double precision.
extern "C" __global__ void double_arithmetic(double* x, const double* y) {
  int i = threadIdx.x;
  double a = x[i], b = y[i];
  x[i] = a / b + sqrt(a) + 1.0 / b + fma(a, b, a) + fmod(a, b);
  x[i] += __dadd_rz(a, b) + __dmul_ru(a, b) + __fma_rd(a, b, a) + __ddiv_rz(a, b) + __dsqrt_ru(a) + __drcp_rn(b);
  x[i] += floor(a) + ceil(b) + trunc(a) + rint(b) + fmin(a, b) + fmax(a, b) + fabs(a) + copysign(a, b) + rsqrt(b);
  x[i] += isnan(a) + isinf(b) + (a < b) + (a == b);
}
