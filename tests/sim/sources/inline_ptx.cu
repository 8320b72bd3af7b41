// Inline PTX with unusual spacing, comments, numbers and scopes.
extern "C" __global__ void inline_ptx(unsigned* u, float* f, unsigned long long* l) {
  unsigned t = threadIdx.x, r, s;
  asm volatile("{.reg.b32 x;.reg .pred p;mov.u32 x,%1;setp.gt.u32 p,x,0x10U;@p add.u32 x,x,017;@!p sub.u32 x,x,0b101;\n"
               "mov.b32 %0,x;}" : "=r"(r) : "r"(t));
  asm("{ .reg .u32 %%a<3>; // a comment\n\t mov.u32 %%a0, %%tid.x; /* another\n one */ add.u32 %%a1 , %%a0 , WARP_SZ ;"
      " mul.lo.u32 %%a2, %%a1, ( 2 + 3 ) * 4 ; mov.u32 %0 , %%a2 ; }" : "=r"(s));
  float x;
  asm("fma.rn.f32 %0, %1, 0f40000000, 1.5;" : "=f"(x) : "f"(f[t]));
  unsigned lo, hi;
  asm("mov.b64 { %0 , %1 } , %2 ;" : "=r"(lo), "=r"(hi) : "l"(l[t]));
  asm volatile("{ .reg .pred q; .reg .b32 n; mov.u32 n, 0;\n LOOP: add.u32 n, n, 1; setp.lt.u32 q, n, %1; @q bra LOOP;\n"
               " mov.u32 %0, n; }" : "=r"(lo) : "r"(t));
  unsigned lane, mask, smid;
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
  asm volatile("mov.u32 %0, %%lanemask_lt;" : "=r"(mask));
  asm volatile("mov.u32 %0, %%smid;" : "=r"(smid));
  unsigned long long timer, wide;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(timer));
  asm("mad.wide.u32 %0, %1, %2, %3;" : "=l"(wide) : "r"(r), "r"(s), "l"(timer));
  asm("bfe.u32 %0, %0, 4, 8; bfi.b32 %0, %0, %1, 3, 5; lop3.b32 %0, %0, %1, %2, 0xe8;" : "+r"(r) : "r"(s), "r"(lane));
  asm("prmt.b32.f4e %0, %0, %1, %2; szext.clamp.u32 %0, %0, %2; bmsk.wrap.b32 %1, %2, 3; bfind.u32 %0, %0;"
      : "+r"(r), "+r"(s) : "r"(lane));
  asm volatile("prefetch.global.L1 [%0];" ::"l"(u));
  asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v2.u32 {%0,%1}, [%2+8];" : "=r"(lo), "=r"(hi) : "l"(u));
  asm volatile("st.global.cs.v2.f32 [ %0 + 16 ] , { %1 , %2 } ;" ::"l"(f), "f"(x), "f"(x) : "memory");
  asm volatile("red.release.gpu.global.add.u32 [%0], 1; fence.acq_rel.gpu; membar.gl;" ::"l"(u) : "memory");
  u[t] = r + s + lo + hi + lane + mask + smid + (unsigned)wide;
  f[t] = x;
}
