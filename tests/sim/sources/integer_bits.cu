// Bit intrinsics, funnel shifts, permutes and wide products.
extern "C" __global__ void integer_bits(unsigned* u, unsigned long long* l, int* s) {
  int i = threadIdx.x;
  unsigned a = u[i], b = u[i + 32];
  u[i] = __popc(a) + __clz(b) + __ffs(a) + __brev(b) + __byte_perm(a, b, 0x3210) + __funnelshift_l(a, b, 5) +
         __funnelshift_r(a, b, i) + __funnelshift_lc(a, b, i) + __funnelshift_rc(a, b, i) + __umulhi(a, b) +
         __usad(a, b, 3) + __umul24(a, b) + __uhadd(a, b) + __urhadd(a, b) + __fns(a, 0, 2);
  s[i] = __mulhi(s[i], s[i + 1]) + __sad(s[i], s[i + 1], 4u) + __mul24(s[i], s[i + 1]) + __hadd(s[i], 7) + abs(s[i]) +
         min(s[i], s[i + 1]) + max(s[i], 2) + (s[i] >> (i & 7)) + (s[i] << (i & 7));
  l[i] = __popcll(l[i]) + __clzll(l[i]) + __ffsll(l[i]) + __brevll(l[i]) + __umul64hi(l[i], l[i + 1]) +
         (unsigned long long)a * b + (l[i] >> i) + (l[i] << i) + ~l[i + 2] + __mul64hi(s[i], s[i + 1]);
}
