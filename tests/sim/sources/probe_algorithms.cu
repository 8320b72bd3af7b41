// Whole kernels that sort, search, decode and count.
extern "C" __global__ void computed_dispatch_vm(const unsigned char* code, int n, long long* o) {
  long long st[16];
  int sp = 0;
  int pc = 0, steps = 0;
  long long acc = threadIdx.x;
  while (pc < n && steps++ < 500) {
    switch (code[pc++]) {
      case 0:
        st[sp++ & 15] = acc;
        break;
      case 1:
        acc += st[--sp & 15];
        break;
      case 2:
        acc *= 3;
        break;
      case 3:
        acc ^= code[pc++];
        break;
      case 4:
        if (acc & 1) pc += code[pc];
        ++pc;
        break;
      case 5:
        if ((acc -= 7) > 0) pc -= 3;
        break;
      case 6:
        acc = acc << 1 | (acc >> 60 & 1);
        break;
      case 7: {
        long long t = st[(sp - 1) & 15];
        st[(sp - 1) & 15] = acc;
        acc = t;
        break;
      }
      case 8:
        acc = __popcll(acc);
        break;
      case 9:
        return;
      default:
        acc = ~acc;
    }
    if (sp < 1) {
      sp = 1;
      st[0] = 5;
    }
  }
  o[threadIdx.x] = acc;
}
extern "C" __global__ void merge_path(const int* a, int na, const int* b, int nb, int* o, int per) {
  int d = min((blockIdx.x * blockDim.x + threadIdx.x) * per, na + nb), e = min(d + per, na + nb);
  int lo = max(0, d - nb), hi = min(d, na);
  while (lo < hi) {
    int m = (lo + hi) / 2;
    if (a[m] <= b[d - 1 - m])
      lo = m + 1;
    else
      hi = m;
  }
  int i = lo, j = d - lo;
  for (int k = d; k < e; ++k) o[k] = (j >= nb || (i < na && a[i] <= b[j])) ? a[i++] : b[j++];
}
extern "C" __global__ void bfs_frontier_one_block(const int* p, const int* c, int* dist, int n) {
  __shared__ int q[2][512], cnt[2];
  if (threadIdx.x == 0) {
    q[0][0] = 0;
    cnt[0] = 1;
    cnt[1] = 0;
  }
  __syncthreads();
  for (int lvl = 1, cur = 0; cnt[cur] > 0; ++lvl, cur ^= 1) {
    for (int i = threadIdx.x; i < cnt[cur]; i += blockDim.x) {
      int u = q[cur][i];
      for (int j = p[u]; j < p[u + 1]; ++j)
        if (atomicCAS(dist + c[j], -1, lvl) == -1) q[cur ^ 1][atomicAdd(&cnt[cur ^ 1], 1)] = c[j];
    }
    __syncthreads();
    if (threadIdx.x == 0) cnt[cur] = 0;
    __syncthreads();
  }
}
extern "C" __global__ void topk_bitonic(const float* x, float* v, int* id, int n, int K) {
  __shared__ unsigned long long s[512];
  int t = threadIdx.x;
  for (int i = t; i < 512; i += 256) {
    unsigned u = i < n ? __float_as_uint(x[blockIdx.x * n + i]) : 0;
    u = i < n ? (u & 0x80000000 ? ~u : u | 0x80000000) : 0;
    s[i] = (unsigned long long)u << 32 | (unsigned)(~i);
  }
  for (int k = 2; k <= 512; k *= 2)
    for (int j = k / 2; j; j /= 2) {
      __syncthreads();
      int i = 2 * j * (t / j) + t % j, p = i + j;
      bool up = i & k;
      if ((s[i] > s[p]) == up) {
        auto q = s[i];
        s[i] = s[p];
        s[p] = q;
      }
    }
  __syncthreads();
  if (t < K) {
    unsigned u = s[t] >> 32;
    u = u & 0x80000000 ? u & 0x7fffffff : ~u;
    v[blockIdx.x * K + t] = __uint_as_float(u);
    id[blockIdx.x * K + t] = ~(unsigned)s[t];
  }
}
extern "C" __global__ void smith_waterman(const char* a, const char* b, int* o, int n) {
  __shared__ int h[3][130];
  __shared__ int best;
  int i = threadIdx.x + 1;
  if (threadIdx.x == 0) best = 0;
  for (int d = threadIdx.x; d < 390; d += blockDim.x) ((int*)h)[d] = 0;
  __syncthreads();
  int mx = 0;
  for (int d = 2; d <= 2 * n; ++d) {
    int j = d - i;
    int *c = h[d % 3], *p = h[(d + 2) % 3], *q = h[(d + 1) % 3];
    int v = 0;
    if (i <= n && j >= 1 && j <= n) {
      v = max(0, max(q[i - 1] + (a[i - 1] == b[j - 1] ? 3 : -1), max(p[i - 1], p[i]) - 2));
      mx = max(mx, v);
    }
    __syncthreads();
    if (i <= n) c[i] = v;
    if (i == 1) c[0] = 0;
    __syncthreads();
  }
  atomicMax(&best, mx);
  __syncthreads();
  if (threadIdx.x == 0) *o = best;
}
extern "C" __global__ void levenshtein_u16(const unsigned char* a, const unsigned char* b, int* o,
                                           int n, int m) {
  unsigned short d[40];
  a += threadIdx.x * n;
  b += threadIdx.x * m;
  for (int j = 0; j <= m; ++j) d[j] = j;
  for (int i = 0; i < n; ++i) {
    unsigned short p = d[0];
    d[0] = i + 1;
    for (int j = 0; j < m; ++j) {
      unsigned short q = d[j + 1];
      d[j + 1] = min(min(q + 1, d[j] + 1), p + (a[i] != b[j]));
      p = q;
    }
  }
  o[threadIdx.x] = d[m];
}
namespace huffman_decode_parts {
struct E {
  unsigned char sym, len;
};
__constant__ E tab[16] = {{0, 1}, {0, 1}, {0, 1}, {0, 1}, {0, 1}, {0, 1}, {0, 1}, {0, 1},
                          {1, 2}, {1, 2}, {1, 2}, {1, 2}, {2, 3}, {2, 3}, {3, 4}, {4, 4}};

}  // namespace huffman_decode_parts
using namespace huffman_decode_parts;
extern "C" __global__ void huffman_decode(const unsigned* w, const int* len, unsigned char* o) {
  int t = threadIdx.x;
  w += t * 20;
  int at = 0;
  for (int i = 0; i < len[t]; ++i) {
    unsigned hi = w[at >> 5], lo = (at >> 5) + 1 < 20 ? w[(at >> 5) + 1] : 0;
    E e = tab[__funnelshift_l(lo, hi, at & 31) >> 28];
    o[t * 150 + i] = e.sym;
    at += e.len;
  }
}
extern "C" __global__ void hash_cas(const unsigned* x, unsigned long long* tab, unsigned* found,
                                    int n, int cap) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    unsigned key = x[i], h = key * 2654435761u % cap;
    for (;;) {
      unsigned long long old = atomicCAS(tab + h, 0ull, (unsigned long long)key << 32 | 1);
      if (old == 0) break;
      if (old >> 32 == key) {
        atomicAdd(tab + h, 1ull);
        break;
      }
      h = h + 1 == cap ? 0 : h + 1;
    }
  }
  __threadfence();
  __shared__ int c;
  if (threadIdx.x == 0) c = 0;
  __syncthreads();
  if (i < n) atomicAdd(&c, 1);
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(found, c);
}
namespace sha256_parts {
__constant__ unsigned K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
__device__ unsigned rr(unsigned x, int n) { return __funnelshift_r(x, x, n); }

}  // namespace sha256_parts
using namespace sha256_parts;
extern "C" __global__ void sha256(const unsigned char* m, int len, unsigned* o, int n) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= n) return;
  unsigned h[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                   0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  const unsigned char* p = m + t * len;
  int l = len - t % 7;
  int total = (l + 9 + 63) / 64;
  for (int b = 0; b < total; ++b) {
    unsigned w[64];
    for (int i = 0; i < 16; ++i) {
      unsigned v = 0;
      for (int j = 0; j < 4; ++j) {
        int at = b * 64 + i * 4 + j;
        unsigned c = at < l ? p[at] : at == l ? 0x80 : 0;
        v = v << 8 | c;
      }
      w[i] = v;
    }
    if (b == total - 1) {
      w[14] = 0;
      w[15] = l * 8;
    }
#pragma unroll 1
    for (int i = 16; i < 64; ++i)
      w[i] = w[i - 16] + (rr(w[i - 15], 7) ^ rr(w[i - 15], 18) ^ w[i - 15] >> 3) + w[i - 7] +
             (rr(w[i - 2], 17) ^ rr(w[i - 2], 19) ^ w[i - 2] >> 10);
    unsigned v[8];
    for (int i = 0; i < 8; ++i) v[i] = h[i];
#pragma unroll 1
    for (int i = 0; i < 64; ++i) {
      unsigned t1 = v[7] + (rr(v[4], 6) ^ rr(v[4], 11) ^ rr(v[4], 25)) +
                    (v[4] & v[5] ^ ~v[4] & v[6]) + K[i] + w[i];
      unsigned t2 =
          (rr(v[0], 2) ^ rr(v[0], 13) ^ rr(v[0], 22)) + (v[0] & v[1] ^ v[0] & v[2] ^ v[1] & v[2]);
      for (int j = 7; j; --j) v[j] = v[j - 1];
      v[4] += t1;
      v[0] = t1 + t2;
    }
    for (int i = 0; i < 8; ++i) h[i] += v[i];
  }
  for (int i = 0; i < 8; ++i) o[t * 8 + i] = h[i];
}
