// SIMD intrinsics, and the video instructions that inline PTX can name.
extern "C" __global__ void simd_halves(unsigned* u) {
  int t = threadIdx.x;
  unsigned a = u[t], b = u[t + 32], r = 0;
  r ^= __vadd2(a, b) ^ __vaddss2(a, b) ^ __vaddus2(a, b) ^ __vsub2(a, b) ^ __vsubss2(a, b) ^ __vsubus2(a, b);
  r ^= __vabs2(a) ^ __vabsss2(a) ^ __vneg2(a) ^ __vnegss2(a) ^ __vabsdiffs2(a, b) ^ __vabsdiffu2(a, b);
  r ^= __vavgs2(a, b) ^ __vavgu2(a, b) ^ __vhaddu2(a, b) ^ __vmaxs2(a, b) ^ __vmaxu2(a, b) ^ __vmins2(a, b) ^ __vminu2(a, b);
  r ^= __vsads2(a, b) ^ __vsadu2(a, b) ^ __vseteq2(a, b) ^ __vsetges2(a, b) ^ __vsetgtu2(a, b) ^ __vcmpne2(a, b) ^ __vcmplts2(a, b);
  u[t] = r;
}
extern "C" __global__ void simd_bytes(unsigned* u) {
  int t = threadIdx.x;
  unsigned a = u[t], b = u[t + 32], r = 0;
  r ^= __vadd4(a, b) ^ __vaddss4(a, b) ^ __vaddus4(a, b) ^ __vsub4(a, b) ^ __vsubss4(a, b) ^ __vsubus4(a, b);
  r ^= __vabs4(a) ^ __vabsss4(a) ^ __vneg4(a) ^ __vnegss4(a) ^ __vabsdiffs4(a, b) ^ __vabsdiffu4(a, b);
  r ^= __vavgs4(a, b) ^ __vavgu4(a, b) ^ __vhaddu4(a, b) ^ __vmaxs4(a, b) ^ __vmaxu4(a, b) ^ __vmins4(a, b) ^ __vminu4(a, b);
  r ^= __vsads4(a, b) ^ __vsadu4(a, b) ^ __vseteq4(a, b) ^ __vsetges4(a, b) ^ __vsetgtu4(a, b) ^ __vcmpne4(a, b) ^ __vcmplts4(a, b);
  u[t] = r;
}
extern "C" __global__ void simd_relu(int* s, unsigned* u) {
  int t = threadIdx.x;
  s[t] = __vimax_s32_relu(s[t], s[t + 1]) + __vimin_s32_relu(s[t], s[t + 2]) + __vimax3_s32(s[t], s[t + 1], s[t + 2]) +
         __viaddmax_s32(s[t], s[t + 1], s[t + 2]) + __vimin3_s32_relu(s[t], s[t + 1], s[t + 2]);
  u[t] = __vimax3_u16x2(u[t], u[t + 1], u[t + 2]) ^ __viaddmin_s16x2_relu(u[t], u[t + 1], u[t + 2]) ^ __vimax_s16x2_relu(u[t], u[t + 1]);
}
extern "C" __global__ void video_words(unsigned* u) {
  int t = threadIdx.x;
  unsigned a = u[t], b = u[t + 32], c = u[t + 64], r;
  asm("vadd.s32.u32.s32.sat %0, %1.b1, %2.h0;" : "=r"(r) : "r"(a), "r"(b));
  asm("vsub.u32.s32.u32.min %0, %1, %2.b3, %3;" : "+r"(r) : "r"(a), "r"(b), "r"(c));
  asm("vabsdiff.u32.u32.u32 %0.b2, %1, %2.b0, %3;" : "+r"(r) : "r"(a), "r"(b), "r"(c));
  asm("vmin.s32.s32.s32.add %0, %1.h1, %2, %3; vmax.u32.u32.u32.max %0, %0, %2.h1, %3;" : "+r"(r) : "r"(a), "r"(b), "r"(c));
  asm("vshl.u32.u32.u32.sat.clamp %0, %1, %2.b0; vshr.s32.s32.u32.wrap.add %0, %1, %2, %3;" : "+r"(r) : "r"(a), "r"(b), "r"(c));
  asm("vmad.s32.s32.u32.sat.shr7 %0, %1.h0, -%2.b1, %3; vmad.u32.u32.u32.po %0, %0, %2, %3;" : "+r"(r) : "r"(a), "r"(b), "r"(c));
  asm("vset.s32.u32.lt %0, %1.b0, %2; vset.u32.u32.ge.add %0, %1, %2, %3;" : "+r"(r) : "r"(a), "r"(b), "r"(c));
  u[t] = r;
}
extern "C" __global__ void video_parts(unsigned* u) {
  int t = threadIdx.x;
  unsigned a = u[t], b = u[t + 32], c = u[t + 64], r;
  asm("vadd2.s32.s32.s32.sat %0, %1, %2, %3; vsub2.u32.u32.u32 %0.h1, %0.h13, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
  asm("vavrg2.s32.s32.s32 %0, %1, %2, %3; vabsdiff2.u32.u32.u32.add %0, %0, %2.h01, %3;" : "+r"(r) : "r"(a), "r"(b), "r"(c));
  asm("vmin2.u32.s32.u32 %0, %1, %2, %3; vmax2.s32.s32.s32 %0, %0, %2, %3; vset2.s32.s32.gt %0, %0, %2, %3;" : "+r"(r) : "r"(a), "r"(b), "r"(c));
  asm("vadd4.u32.u32.u32.sat %0.b20, %1.b7531, %2, %3; vsub4.s32.s32.s32 %0, %0, %2, %3;" : "+r"(r) : "r"(a), "r"(b), "r"(c));
  asm("vavrg4.u32.u32.u32 %0, %1, %2, %3; vabsdiff4.u32.u32.u32.add %0, %0, %2, %3;" : "+r"(r) : "r"(a), "r"(b), "r"(c));
  asm("vmin4.u32.u32.u32 %0, %1, %2, %3; vmax4.s32.s32.s32 %0, %0, %2, %3; vset4.u32.u32.ne.add %0, %0, %2, %3;" : "+r"(r) : "r"(a), "r"(b), "r"(c));
  u[t] = r;
}
