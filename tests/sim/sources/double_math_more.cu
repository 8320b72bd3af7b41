// More functions of the double-precision library.
extern "C" __global__ void double_math_more(double* x, int n) {
  int i = threadIdx.x;
  double a = x[i];
  x[i] = tan(a) + atan2(a, 2.0) + asin(a) + sinh(a) + log1p(a) + expm1(a) + exp2(a) + log2(a) + log10(a) + lgamma(a);
}
