// Division and remainder of every width.
extern "C" __global__ void integer_division(long long* a, unsigned long long* b, int* c, unsigned* d, short* e,
                                            unsigned char* f) {
  int i = threadIdx.x;
  a[i] = a[i] / a[i + 64] + a[i] % a[i + 64];
  b[i] = b[i] / b[i + 64] + b[i] % b[i + 64];
  c[i] = c[i] / c[i + 64] + c[i] % c[i + 64] + c[i] / 7 + c[i] % 10;
  d[i] = d[i] / d[i + 64] + d[i] % d[i + 64] + d[i] / 7 + d[i] % 10;
  e[i] = e[i] / e[i + 64] + e[i] % e[i + 64];
  f[i] = f[i] / f[i + 64] + f[i] % f[i + 64];
}
