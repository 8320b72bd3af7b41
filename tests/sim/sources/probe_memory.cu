// Loads and stores of every cache operator, width and state space; prefetches and policies.
#define KERNEL(name) extern "C" __global__ void name
__constant__ float4 table[64];
__device__ int counters[64];
KERNEL(cache_loads)(const int* x, const double2* y, const uchar4* z, const short2* w, int* o) {
  int t = threadIdx.x;
  o[t] = __ldg(x + t) + __ldca(x + t) + __ldcg(x + t) + __ldcs(x + t) + __ldlu(x + t) + __ldcv(x + t);
  o[t] += (int)__ldg(y + t).x + __ldcs(z + t).w + __ldcg(w + t).y + (int)__ldg((const long long*)x + t);
}
KERNEL(cache_stores)(int* x, double2* y, uchar4* z, float4* w) {
  int t = threadIdx.x;
  __stwb(x + t, t);
  __stcg(y + t, make_double2(t, -t));
  __stcs(z + t, make_uchar4(t, 1, 2, 3));
  __stwt(w + t, make_float4(t, 1, 2, 3));
}
KERNEL(volatile_words)(volatile int* x, volatile unsigned char* c, volatile double* d, volatile long long* l) {
  int t = threadIdx.x;
  x[t] = x[t + 1] + c[t];
  d[t] = d[t + 1];
  l[t] = l[t + 1] + 1;
  c[t] = (unsigned char)x[t];
}
KERNEL(state_spaces)(float* o, int n) {
  extern __shared__ float dynamic[];
  __shared__ double fixed[64];
  float own[16];
  int t = threadIdx.x;
  for (int i = 0; i < 16; ++i) own[(i + n) & 15] = table[i & 63].x + i;
  fixed[t] = own[n & 15];
  dynamic[t] = table[t & 63].y;
  __syncthreads();
  atomicAdd(counters + (t & 63), 1);
  const float* generic = n > 3 ? dynamic : own;
  o[t] = generic[t & 15] + (float)fixed[63 - t] + counters[t & 63] + (__isShared(generic) ? 1 : 0) + (__isLocal(own) ? 2 : 0) +
         (__isGlobal(o) ? 4 : 0) + (__isConstant(table) ? 8 : 0);
}
KERNEL(hinted)(const float* x, float* y) {
  float a, b, c, d;
  unsigned long long p;
  const float* at = x + threadIdx.x * 4;
  asm("ld.global.nc.L1::no_allocate.L2::256B.v4.f32 {%0,%1,%2,%3}, [%4];" : "=f"(a), "=f"(b), "=f"(c), "=f"(d) : "l"(at));
#if __CUDA_ARCH__ >= 800
  asm("createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64 %0, 0.5;" : "=l"(p));
  asm("ld.global.L1::evict_last.L2::cache_hint.f32 %0, [%1], %2;" : "=f"(a) : "l"(at), "l"(p));
  asm volatile("st.global.L2::cache_hint.f32 [%0], %1, %2;" ::"l"(y), "f"(b), "l"(p) : "memory");
  asm volatile("createpolicy.range.global.L2::evict_first.b64 %0, [%1], 64, 128; applypriority.global.L2::evict_normal [%1], 128;" : "=l"(p) : "l"(at));
#endif
  asm volatile("prefetch.global.L2 [%0]; prefetch.local.L1 [0]; prefetchu.L1 [%0];" ::"l"(at));
  asm("ldu.global.f32 %0, [%1];" : "=f"(c) : "l"(at));
  y[threadIdx.x] = a + b + c + d;
}
KERNEL(ordered)(unsigned* u, unsigned long long* l) {
  unsigned r;
  unsigned long long s;
  asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(r) : "l"(u) : "memory");
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(s) : "l"(l) : "memory");
  asm volatile("st.release.cta.u32 [%0], %1; st.relaxed.gpu.global.u64 [%2], %3;" ::"l"(u), "r"(r), "l"(l), "l"(s) : "memory");
  asm volatile("fence.sc.gpu; fence.acq_rel.sys; membar.cta; membar.sys; fence.proxy.alias;" ::: "memory");
  asm volatile("ld.mmio.relaxed.sys.global.u32 %0, [%1]; st.mmio.relaxed.sys.global.u32 [%1], %0;" : "=r"(r) : "l"(u) : "memory");
  __threadfence();
  __threadfence_block();
  __threadfence_system();
}
KERNEL(wide_values)(ulonglong2* x) {
  int t = threadIdx.x;
  asm volatile("{ .reg .b128 q; .reg .b64 a, b; ld.global.b128 q, [%0]; mov.b128 {a, b}, q; add.u64 a, a, b; mov.b128 q, {b, a}; st.global.b128 [%0], q; }" ::"l"(x + t) : "memory");
}
struct Big { double d[9]; char c[3]; short h; };
KERNEL(structures)(Big* out, const Big in, const __grid_constant__ Big other) {
  Big b = in;
  b.d[threadIdx.x % 9] += other.d[(threadIdx.x + 1) % 9];
  b.h += in.c[1];
  out[threadIdx.x] = b;
  memcpy(out + 64, &other, sizeof(Big));
  memset(out + 65, 3, sizeof(Big));
}
