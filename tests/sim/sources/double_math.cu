// Functions of the double-precision library.
extern "C" __global__ void double_math(double* x, int n) {
  int i = threadIdx.x;
  double a = x[i];
  x[i] = sin(a) + cos(a) + exp(a) + log(a) + pow(a, 1.5) + tanh(a) + cbrt(a) + erf(a);
}
