// Whole kernels that multiply, filter and reduce in tiles.
#include <cuda_fp16.h>
namespace flash_attention_parts {
__device__ inline unsigned sm(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ inline void cpa(void* d, const void* s) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(sm(d)), "l"(s));
}
__device__ inline void commit() { asm volatile("cp.async.commit_group;"); }
template <int N>
__device__ inline void waitg() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N));
}
__device__ inline void ldm4(unsigned* r, const void* p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(sm(p)));
}
__device__ inline void ldm4t(unsigned* r, const void* p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(sm(p)));
}
__device__ inline void mma(float* d, const unsigned* a, unsigned b0, unsigned b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

}  // namespace flash_attention_parts
using namespace flash_attention_parts;
extern "C" __global__ void __launch_bounds__(128)
    flash_attention(const __half* q, const __half* kk, const __half* v, float* o, int n,
                    float scale) {
  constexpr int D = 64, BN = 64;
  __shared__ alignas(16) __half Q[64][D + 8], K[2][BN][D + 8], V[2][BN][D + 8];
  size_t base = (size_t)blockIdx.y * n * D;
  int w = threadIdx.x / 32, l = threadIdx.x % 32;
  int row0 = blockIdx.x * 64;
  auto load = [&](__half(*dst)[D + 8], const __half* src) {
    for (int i = threadIdx.x; i < 64 * 8; i += 128)
      cpa(&dst[i / 8][i % 8 * 8], src + (i / 8) * D + i % 8 * 8);
  };
  load(Q, q + base + (size_t)row0 * D);
  load(K[0], kk + base);
  load(V[0], v + base);
  commit();
  float acc[8][4] = {}, m[2] = {-1e30f, -1e30f}, L[2] = {0, 0};
  unsigned qa[4][4];
  int tiles = n / BN;
  for (int t = 0; t < tiles; ++t) {
    if (t + 1 < tiles) {
      load(K[(t + 1) & 1], kk + base + (size_t)(t + 1) * BN * D);
      load(V[(t + 1) & 1], v + base + (size_t)(t + 1) * BN * D);
    }
    commit();
    waitg<1>();
    __syncthreads();
    if (t == 0)
      for (int kc = 0; kc < 4; ++kc) ldm4(qa[kc], &Q[w * 16 + l % 16][kc * 16 + l / 16 * 8]);
    float s[8][4] = {};
    for (int kc = 0; kc < 4; ++kc)
      for (int nb = 0; nb < 8; nb += 2) {
        unsigned b[4];
        ldm4(b, &K[t & 1][nb * 8 + (l / 16) * 8 + l % 8][kc * 16 + (l / 8 % 2) * 8]);
        mma(s[nb], qa[kc], b[0], b[1]);
        mma(s[nb + 1], qa[kc], b[2], b[3]);
      }
    float mn[2] = {m[0], m[1]};
    for (int nb = 0; nb < 8; ++nb)
      for (int j = 0; j < 4; ++j) {
        s[nb][j] *= scale;
        mn[j / 2] = fmaxf(mn[j / 2], s[nb][j]);
      }
    for (int r = 0; r < 2; ++r) {
      mn[r] = fmaxf(mn[r], __shfl_xor_sync(~0u, mn[r], 1));
      mn[r] = fmaxf(mn[r], __shfl_xor_sync(~0u, mn[r], 2));
      float a = __expf(m[r] - mn[r]);
      m[r] = mn[r];
      L[r] *= a;
      for (int nb = 0; nb < 8; ++nb) {
        acc[nb][r * 2] *= a;
        acc[nb][r * 2 + 1] *= a;
      }
    }
    unsigned p[8][2];
    for (int nb = 0; nb < 8; ++nb) {
      float e[4];
      for (int j = 0; j < 4; ++j) {
        e[j] = __expf(s[nb][j] - m[j / 2]);
        L[j / 2] += e[j];
      }
      __half2 h0 = __floats2half2_rn(e[0], e[1]), h1 = __floats2half2_rn(e[2], e[3]);
      p[nb][0] = *(unsigned*)&h0;
      p[nb][1] = *(unsigned*)&h1;
    }
    for (int kc = 0; kc < 4; ++kc) {
      unsigned a[4] = {p[kc * 2][0], p[kc * 2][1], p[kc * 2 + 1][0], p[kc * 2 + 1][1]};
      for (int nb = 0; nb < 8; nb += 2) {
        unsigned b[4];
        ldm4t(b, &V[t & 1][kc * 16 + l % 16][nb * 8 + l / 16 * 8]);
        mma(acc[nb], a, b[0], b[1]);
        mma(acc[nb + 1], a, b[2], b[3]);
      }
    }
    __syncthreads();
  }
  for (int r = 0; r < 2; ++r) {
    L[r] += __shfl_xor_sync(~0u, L[r], 1);
    L[r] += __shfl_xor_sync(~0u, L[r], 2);
  }
  for (int nb = 0; nb < 8; ++nb)
    for (int j = 0; j < 4; ++j)
      o[base + (size_t)(row0 + w * 16 + l / 4 + j / 2 * 8) * D + nb * 8 + l % 4 * 2 + j % 2] =
          acc[nb][j] / L[j / 2];
}
extern "C" __global__ void winograd_f2x2(const float* x, const float* w, float* y) {
  float g[4][3], U[4][4];
  for (int j = 0; j < 3; ++j) {
    g[0][j] = w[j];
    g[1][j] = .5f * (w[j] + w[3 + j] + w[6 + j]);
    g[2][j] = .5f * (w[j] - w[3 + j] + w[6 + j]);
    g[3][j] = w[6 + j];
  }
  for (int i = 0; i < 4; ++i) {
    U[i][0] = g[i][0];
    U[i][1] = .5f * (g[i][0] + g[i][1] + g[i][2]);
    U[i][2] = .5f * (g[i][0] - g[i][1] + g[i][2]);
    U[i][3] = g[i][2];
  }
  int ty = threadIdx.y * 2, tx = threadIdx.x * 2;
  float d[4][4], b[4][4];
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) d[i][j] = x[(ty + i) * 18 + tx + j];
  for (int j = 0; j < 4; ++j) {
    b[0][j] = d[0][j] - d[2][j];
    b[1][j] = d[1][j] + d[2][j];
    b[2][j] = d[2][j] - d[1][j];
    b[3][j] = d[1][j] - d[3][j];
  }
  float m[4][4];
  for (int i = 0; i < 4; ++i) {
    m[i][0] = (b[i][0] - b[i][2]) * U[i][0];
    m[i][1] = (b[i][1] + b[i][2]) * U[i][1];
    m[i][2] = (b[i][2] - b[i][1]) * U[i][2];
    m[i][3] = (b[i][1] - b[i][3]) * U[i][3];
  }
  float t[2][4];
  for (int j = 0; j < 4; ++j) {
    t[0][j] = m[0][j] + m[1][j] + m[2][j];
    t[1][j] = m[1][j] - m[2][j] - m[3][j];
  }
  for (int i = 0; i < 2; ++i) {
    y[(ty + i) * 16 + tx] = t[i][0] + t[i][1] + t[i][2];
    y[(ty + i) * 16 + tx + 1] = t[i][1] - t[i][2] - t[i][3];
  }
}
namespace welford_layernorm_parts {
struct W {
  float n, m, s;
};
__device__ W merge(W a, W b) {
  float n = a.n + b.n;
  if (n == 0) return a;
  float d = b.m - a.m;
  return {n, a.m + d * b.n / n, a.s + b.s + d * d * a.n * b.n / n};
}

}  // namespace welford_layernorm_parts
using namespace welford_layernorm_parts;
extern "C" __global__ void welford_layernorm(const float* x, float* o, int n) {
  W w{0, 0, 0};
  for (int i = threadIdx.x; i < n; i += blockDim.x) w = merge(w, W{1, x[blockIdx.x * n + i], 0});
  for (int d = 16; d; d >>= 1)
    w = merge(w, W{__shfl_xor_sync(~0u, w.n, d), __shfl_xor_sync(~0u, w.m, d),
                   __shfl_xor_sync(~0u, w.s, d)});
  __shared__ W s[4];
  if (threadIdx.x % 32 == 0) s[threadIdx.x / 32] = w;
  __syncthreads();
  w = merge(merge(s[0], s[1]), merge(s[2], s[3]));
  float r = rsqrtf(w.s / w.n + 1e-5f);
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    o[blockIdx.x * n + i] = (x[blockIdx.x * n + i] - w.m) * r;
}
extern "C" __global__ void stencil_temporal(const float* x, float* y, int n, int T) {
  extern __shared__ float s[];
  int B = blockDim.x, base = blockIdx.x * (B - 2 * T) - T;
  float *a = s, *b = s + B;
  int g = base + threadIdx.x;
  a[threadIdx.x] = x[(g % n + n) % n];
  for (int t = 0; t < T; ++t) {
    __syncthreads();
    int i = threadIdx.x;
    b[i] = i > 0 && i < B - 1 ? .3f * a[i - 1] + .4f * a[i] + .3f * a[i + 1] : a[i];
    float* q = a;
    a = b;
    b = q;
  }
  if (threadIdx.x >= T && threadIdx.x < B - T && g < n) y[g] = a[threadIdx.x];
}
namespace bitfields_parts {
struct S {
  unsigned a : 3;
  int b : 7;
  unsigned long long c : 40;
  unsigned d : 1, : 0, e : 9;
};
union U {
  float f;
  unsigned u;
  struct {
    unsigned m : 23, e : 8, s : 1;
  } p;
  unsigned char b[4];
};

}  // namespace bitfields_parts
using namespace bitfields_parts;
extern "C" __global__ void bitfields(const unsigned* in, unsigned* o) {
  int i = threadIdx.x;
  S s;
  s.a = in[i];
  s.b = in[i] >> 3;
  s.c = (unsigned long long)in[i] << 9;
  s.d = in[i] >> 31;
  s.e = in[i] >> 5;
  s.b += 60;
  s.a++;
  U u;
  u.u = in[i];
  u.p.e ^= 5;
  u.b[1] = 0x5a;
  o[i] = s.a + s.b * 16 + (unsigned)(s.c >> 20) + s.d * 7 + s.e + u.u + u.p.m;
}
namespace nqueens_bits_parts {
__device__ int solve(unsigned full, unsigned c, unsigned l, unsigned r) {
  if (c == full) return 1;
  int n = 0;
  for (unsigned p = full & ~(c | l | r); p; p &= p - 1) {
    unsigned b = p & -p;
    n += solve(full, c | b, (l | b) << 1, (r | b) >> 1);
  }
  return n;
}

}  // namespace nqueens_bits_parts
using namespace nqueens_bits_parts;
extern "C" __global__ void nqueens_bits(int* o, int n) {
  unsigned b = 1u << (threadIdx.x % n), full = (1u << n) - 1;
  unsigned bb = 1u << (threadIdx.x / n);
  int r = 0;
  unsigned ok = full & ~(b | b << 1 | b >> 1);
  if (threadIdx.x < n * n && (ok & bb))
    r = solve(full, b | bb, ((b << 1) | bb) << 1, ((b >> 1) | bb) >> 1);
  if (r) atomicAdd(o, r);
}
