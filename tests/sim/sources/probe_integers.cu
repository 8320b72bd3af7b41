// One kernel for each family of integer intrinsics and of integer inline PTX.
using u32 = unsigned;
using u64 = unsigned long long;
#define KERNEL(name) extern "C" __global__ void name
KERNEL(int_high)(int* s, u32* u, long long* l, u64* v) {
  int t = threadIdx.x;
  s[t] = __mulhi(s[t], s[t + 1]);
  u[t] = __umulhi(u[t], u[t + 1]);
  l[t] = __mul64hi(l[t], l[t + 1]);
  v[t] = __umul64hi(v[t], v[t + 1]);
}
KERNEL(int_24)(int* s, u32* u) {
  int t = threadIdx.x;
  s[t] = __mul24(s[t], s[t + 1]) + __sad(s[t], s[t + 1], u[t]);
  u[t] = __umul24(u[t], u[t + 1]) + __usad(u[t], u[t + 1], u[t + 2]);
}
KERNEL(int_average)(int* s, u32* u) {
  int t = threadIdx.x;
  s[t] = __hadd(s[t], s[t + 1]) ^ __rhadd(s[t], s[t + 2]);
  u[t] = __uhadd(u[t], u[t + 1]) ^ __urhadd(u[t], u[t + 2]);
}
KERNEL(int_count)(u32* u, u64* v, int* s) {
  int t = threadIdx.x;
  s[t] = __popc(u[t]) + __popcll(v[t]) + __clz(s[t]) + __clzll(v[t]) + __ffs(s[t]) + __ffsll(v[t]) + __fns(u[t], 3, -2);
  u[t] = __brev(u[t]);
  v[t] = __brevll(v[t]);
}
KERNEL(int_funnel)(u32* u) {
  int t = threadIdx.x;
  u[t] = __funnelshift_l(u[t], u[t + 1], u[t + 2]) ^ __funnelshift_lc(u[t], u[t + 1], u[t + 2]) ^
         __funnelshift_r(u[t], u[t + 1], u[t + 2]) ^ __funnelshift_rc(u[t], u[t + 1], u[t + 2]) ^
         __byte_perm(u[t], u[t + 1], u[t + 2]);
}
KERNEL(int_dot)(int* s, u32* u) {
  int t = threadIdx.x;
  s[t] = __dp4a(s[t], s[t + 1], s[t + 2]) + __dp2a_lo(s[t], s[t + 1], s[t + 2]) + __dp2a_hi(s[t], s[t + 1], s[t + 2]);
  u[t] = __dp4a(u[t], u[t + 1], u[t + 2]) + __dp2a_lo(u[t], u[t + 1], u[t + 2]) + __dp2a_hi(u[t], u[t + 1], u[t + 2]);
}
KERNEL(int_divide)(int* s, u32* u, long long* l, u64* v, short* h, signed char* c) {
  int t = threadIdx.x;
  s[t] = s[t] / s[t + 1] + s[t] % s[t + 2] + s[t] / 7 + s[t] % 10;
  u[t] = u[t] / u[t + 1] + u[t] % u[t + 2] + u[t] / 7 + u[t] % 10;
  l[t] = l[t] / l[t + 1] + l[t] % l[t + 2] + l[t] / 1000003;
  v[t] = v[t] / v[t + 1] + v[t] % v[t + 2] + v[t] % 1000003;
  h[t] = h[t] / h[t + 1] + h[t] % h[t + 2];
  c[t] = c[t] / c[t + 1];
}
KERNEL(int_wide)(u64* v, __int128* w, unsigned __int128* x) {
  int t = threadIdx.x;
  w[t] = (__int128)(long long)v[t] * (long long)v[t + 1] + w[t + 1] - w[t + 2] / (__int128)v[t + 2];
  x[t] = (x[t] << v[t] % 128) ^ (x[t + 1] >> v[t + 1] % 128) ^ (x[t + 2] % 10);
}
KERNEL(int_carry)(u32* u, u64* v) {
  int t = threadIdx.x;
  asm("add.cc.u32 %0, %0, %3; addc.cc.u32 %1, %1, %3; addc.u32 %2, %2, 0;" : "+r"(u[t]), "+r"(u[t + 1]), "+r"(u[t + 2]) : "r"(u[t + 3]));
  asm("sub.cc.s32 %0, %0, %2; subc.cc.s32 %1, %1, %2; subc.s32 %0, %0, 1;" : "+r"(u[t]), "+r"(u[t + 1]) : "r"(u[t + 3]));
  asm("mad.lo.cc.u32 %0, %2, %3, %0; madc.hi.cc.u32 %1, %2, %3, %1; madc.lo.u32 %0, %1, %2, %0;" : "+r"(u[t]), "+r"(u[t + 1]) : "r"(u[t + 2]), "r"(u[t + 3]));
  asm("add.cc.u64 %0, %0, %2; addc.u64 %1, %1, %2;" : "+l"(v[t]), "+l"(v[t + 1]) : "l"(v[t + 2]));
  asm("mad.lo.cc.u64 %0, %2, %2, %0; madc.hi.u64 %1, %2, %2, %1;" : "+l"(v[t]), "+l"(v[t + 1]) : "l"(v[t + 2]));
}
KERNEL(int_fields)(u32* u, u64* v, int* s) {
  int t = threadIdx.x;
  asm("bfe.u32 %0, %0, %1, %2; bfi.b32 %0, %1, %0, %2, 5; szext.wrap.s32 %0, %0, %1;" : "+r"(u[t]) : "r"(u[t + 1]), "r"(u[t + 2]));
  asm("bfe.s64 %0, %0, 8, 16; bfi.b64 %0, %1, %0, 3, 40;" : "+l"(v[t]) : "l"(v[t + 1]));
  asm("bfe.s32 %0, %0, %1, 9; bmsk.clamp.b32 %0, %0, %1; bfind.shiftamt.s32 %0, %0; cnot.b32 %0, %0;" : "+r"(s[t]) : "r"(s[t + 1]));
  asm("{ .reg .pred p; setp.ne.s32 p, %1, 0; lop3.or.b32 %0|p, %0, %1, 7, 0x96, p; selp.b32 %0, %0, %1, p; }" : "+r"(s[t]) : "r"(s[t + 1]));
}
KERNEL(int_saturate)(int* s) {
  int t = threadIdx.x;
  asm("add.sat.s32 %0, %0, %1; sub.sat.s32 %0, %0, %1; mad.hi.sat.s32 %0, %0, %1, %1; mad24.hi.sat.s32 %0, %0, %1, %1;" : "+r"(s[t]) : "r"(s[t + 1]));
  asm("cvt.pack.sat.s8.s32.b32 %0, %0, %1, %1; cvt.pack.sat.u16.s32 %0, %0, %1; cvt.pack.sat.u4.s32.b32 %0, %0, %1, 0;" : "+r"(s[t]) : "r"(s[t + 1]));
  asm("cvt.sat.u8.s32 %0, %0; slct.s32.s32 %0, %0, %1, %0; mul.wide.s16 %0, 3, -4; shf.l.clamp.b32 %0, %0, %1, 35;" : "+r"(s[t]) : "r"(s[t + 1]));
}
KERNEL(int_overflow)(int* s, u32* u, bool* b) {
  int t = threadIdx.x;
  s[t] = min(max(s[t], -5), 100) + abs(s[t + 1]) - (s[t] > 3 ? s[t + 1] : ~s[t + 2]);
  u[t] = (u[t] << (u[t + 1] & 31)) | (u[t] >> (32 - (u[t + 1] & 31)));
  b[t] = u[t] > 3 && s[t] < 2;
}
