// Functions of the single-precision library.
extern "C" __global__ void float_math(float* x, int n) {
  int i = threadIdx.x;
  float a = x[i];
  x[i] = sinf(a) + cosf(a) + tanf(a) + expf(a) + logf(a) + powf(a, 1.5f) + tanhf(a) + erff(a) + exp2f(a) + log2f(a);
  x[i] += atan2f(a, 2.0f) + asinf(a) + acosf(a) + cbrtf(a) + sinhf(a) + log1pf(a) + expm1f(a) + log10f(a) + sinpif(a);
  x[i] += __sinf(a) + __cosf(a) + __expf(a) + __logf(a) + __powf(a, 2.0f) + __tanf(a) + __exp10f(a) + __log2f(a);
  x[i] += tgammaf(a) + j0f(a) + normcdff(a) + erfcf(a);
}
