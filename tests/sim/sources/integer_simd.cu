// Dot products and byte-wise video intrinsics.
extern "C" __global__ void integer_simd(unsigned* u, int* s) {
  int i = threadIdx.x;
  unsigned a = u[i], b = u[i + 32];
  s[i] = __dp4a((int)a, (int)b, s[i]) + __dp2a_lo((int)a, (int)b, s[i]) + __dp2a_hi((int)a, (int)b, s[i]);
  u[i] = __dp4a(a, b, 1u) + __vadd4(a, b) + __vabsdiffu4(a, b) + __vsads4(a, b) + __vmaxu4(a, b) + __vcmpgtu4(a, b) +
         __vavgu4(a, b) + __vsubss2(a, b) + __vsetltu2(a, b) + __vabsss4(a) + __vmins2(a, b) + __vadd2(a, b);
}
