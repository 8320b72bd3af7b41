// mma.sync in every shape and type that the architecture has, sparse ones too, ldmatrix, movmatrix.
using u32 = unsigned;
#define KERNEL(name) extern "C" __global__ void name
#define R4(x) "r"(x[t]), "r"(x[t + 32]), "r"(x[t + 64]), "r"(x[t + 96])
#define R2(x) "r"(x[t]), "r"(x[t + 32])
#define D4(k, x) "+" k(x[t]), "+" k(x[t + 32]), "+" k(x[t + 64]), "+" k(x[t + 96])
#define MMA422(types, k, d) asm volatile("mma.sync.aligned." types " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" : D4(k, d) : R4(a), R2(b))
#define MMA421(types, k, d) asm volatile("mma.sync.aligned." types " {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};" : D4(k, d) : R2(a), "r"(b[t]))
#define MMA211(types, k, d) asm volatile("mma.sync.aligned." types " {%0,%1}, {%2}, {%3}, {%0,%1};" : "+" k(d[t]), "+" k(d[t + 32]) : "r"(a[t]), "r"(b[t]))
#define MMA242(types, k, d) asm volatile("mma.sync.aligned." types " {%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%0,%1};" : "+" k(d[t]), "+" k(d[t + 32]) : R4(a), R2(b))
KERNEL(mma_quarters)(const u32* a, const u32* b, float* f, u32* h) {
  int t = threadIdx.x;
  asm volatile("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%0,%1,%2,%3,%4,%5,%6,%7}, {%8,%9}, {%10,%11}, {%0,%1,%2,%3,%4,%5,%6,%7};"
               : "+f"(f[t]), "+f"(f[t + 32]), "+f"(f[t + 64]), "+f"(f[t + 96]), "+f"(f[t + 128]), "+f"(f[t + 160]), "+f"(f[t + 192]), "+f"(f[t + 224]) : R2(a), R2(b));
  asm volatile("mma.sync.aligned.m8n8k4.col.row.f16.f16.f16.f16 {%0,%1,%2,%3}, {%4,%5}, {%6,%7}, {%0,%1,%2,%3};" : D4("r", h) : R2(a), R2(b));
}
KERNEL(mma_75)(const u32* a, const u32* b, float* f, u32* h, int* s) {
  int t = threadIdx.x;
  MMA421("m16n8k8.row.col.f32.f16.f16.f32", "f", f);
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3}, {%4}, {%0,%1};" : "+r"(h[t]), "+r"(h[t + 32]) : R2(a), "r"(b[t]));
  MMA211("m8n8k16.row.col.satfinite.s32.s8.u8.s32", "r", s);
  MMA211("m8n8k32.row.col.s32.u4.s4.s32", "r", s);
  MMA211("m8n8k128.row.col.s32.b1.b1.s32.xor.popc", "r", s);
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1]; movmatrix.sync.aligned.m8n8.trans.b16 %0, %0;" : "=r"(h[t]) : "r"(t * 16));
}
#if __CUDA_ARCH__ >= 800
KERNEL(mma_80_float)(const u32* a, const u32* b, float* f, u32* h, double* d) {
  int t = threadIdx.x;
  MMA422("m16n8k16.row.col.f32.f16.f16.f32", "f", f);
  MMA242("m16n8k16.row.col.f16.f16.f16.f16", "r", h);
  MMA421("m16n8k8.row.col.f32.bf16.bf16.f32", "f", f);
  MMA422("m16n8k16.row.col.f32.bf16.bf16.f32", "f", f);
  MMA421("m16n8k4.row.col.f32.tf32.tf32.f32", "f", f);
  MMA422("m16n8k8.row.col.f32.tf32.tf32.f32", "f", f);
  asm volatile("mma.sync.aligned.m8n8k4.row.col.rz.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};" : "+d"(d[t]), "+d"(d[t + 32]) : "d"(d[t + 64]), "d"(d[t + 96]));
}
#if __CUDACC_VER_MAJOR__ > 12 || __CUDACC_VER_MINOR__ >= 5
#define SPARSE "sp::ordered_metadata"
#else
#define SPARSE "sp"
#endif
#define SPARSE4(word, types, k, d, selector) asm volatile("mma." word ".sync.aligned." types " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9,%10,%11}, {%0,%1,%2,%3}, %12, " #selector ";" : D4(k, d) : R4(a), R4(b), "r"(e[t]))
#define SPARSE2(word, types, k, d, selector) asm volatile("mma." word ".sync.aligned." types " {%0,%1,%2,%3}, {%4,%5}, {%6,%7}, {%0,%1,%2,%3}, %8, " #selector ";" : D4(k, d) : R2(a), R2(b), "r"(e[t]))
KERNEL(mma_80_sparse)(const u32* a, const u32* b, const u32* e, float* f, u32* h, int* s) {
  int t = threadIdx.x;
  SPARSE2("sp", "m16n8k16.row.col.f32.f16.f16.f32", "f", f, 3);
  SPARSE4(SPARSE, "m16n8k32.row.col.f32.bf16.bf16.f32", "f", f, 1);
  SPARSE2("sp", "m16n8k8.row.col.f32.tf32.tf32.f32", "f", f, 0);
  SPARSE4("sp", "m16n8k16.row.col.f32.tf32.tf32.f32", "f", f, 1);
  SPARSE2(SPARSE, "m16n8k32.row.col.s32.u8.s8.s32", "r", s, 1);
  SPARSE4(SPARSE, "m16n8k64.row.col.satfinite.s32.s8.s8.s32", "r", s, 0);
  SPARSE2("sp", "m16n8k64.row.col.satfinite.s32.u4.u4.s32", "r", s, 0);
  SPARSE4(SPARSE, "m16n8k128.row.col.s32.s4.u4.s32", "r", s, 0);
  asm volatile("mma.sp.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3}, {%4,%5}, {%0,%1}, %6, 2;" : "+r"(h[t]), "+r"(h[t + 32]) : R2(a), R2(b), "r"(e[t]));
}
KERNEL(mma_80_integer)(const u32* a, const u32* b, int* s) {
  int t = threadIdx.x;
  MMA421("m16n8k16.row.col.s32.u8.s8.s32", "r", s);
  MMA422("m16n8k32.row.col.satfinite.s32.s8.s8.s32", "r", s);
  MMA421("m16n8k32.row.col.s32.s4.s4.s32", "r", s);
  MMA422("m16n8k64.row.col.satfinite.s32.u4.u4.s32", "r", s);
  MMA211("m8n8k128.row.col.s32.b1.b1.s32.and.popc", "r", s);
  MMA421("m16n8k128.row.col.s32.b1.b1.s32.and.popc", "r", s);
  MMA422("m16n8k256.row.col.s32.b1.b1.s32.xor.popc", "r", s);
}
#endif
#if __CUDA_ARCH__ >= 890
KERNEL(mma_89)(const u32* a, const u32* b, const u32* e, float* f, u32* h) {
  int t = threadIdx.x;
  SPARSE4(SPARSE, "m16n8k64.row.col.f32.e4m3.e5m2.f32", "f", f, 0);
  MMA422("m16n8k32.row.col.f32.e4m3.e5m2.f32", "f", f);
  MMA422("m16n8k32.row.col.f32.e5m2.e4m3.f32", "f", f);
#if __CUDACC_VER_MAJOR__ > 12 || __CUDACC_VER_MINOR__ >= 8
  MMA421("m16n8k16.row.col.f32.e4m3.e4m3.f32", "f", f);
  MMA242("m16n8k32.row.col.f16.e5m2.e5m2.f16", "r", h);
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.e4m3.e5m2.f16 {%0,%1}, {%2,%3}, {%4}, {%0,%1};" : "+r"(h[t]), "+r"(h[t + 32]) : R2(a), "r"(b[t]));
#endif
}
#endif
KERNEL(tiles_moved)(const uint4* x, u32* y) {
  __shared__ uint4 tile[64];
  int t = threadIdx.x;
  tile[t] = x[t];
  tile[t + 32] = x[t + 32];
  __syncwarp();
  u32 at = (u32)__cvta_generic_to_shared(tile + t), r0, r1, r2, r3, s0, s1;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "r"(at));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2+128];" : "=r"(s0), "=r"(s1) : "r"(at));
  y[t] = r0 + r1 + r2 + r3 + s0 + s1;
}
