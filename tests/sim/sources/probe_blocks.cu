// Whole kernels whose blocks work together.
extern "C" __global__ void splitk_semaphore(const float* a, const float* b, float* c, int* sem,
                                            int N, int K) {
  int s = blockIdx.z, S = gridDim.z;
  int r = blockIdx.y * 8 + threadIdx.y, q = blockIdx.x * 32 + threadIdx.x;
  float v = 0;
  for (int k = s * K / S; k < (s + 1) * K / S; ++k) v += a[r * K + k] * b[k * N + q];
  int* my = sem + blockIdx.y * gridDim.x + blockIdx.x;
  if (threadIdx.x == 0 && threadIdx.y == 0) {
    int x;
    do {
      asm volatile("ld.global.acquire.gpu.b32 %0, [%1];" : "=r"(x) : "l"(my) : "memory");
    } while (x != s);
  }
  __syncthreads();
  if (s)
    c[r * N + q] += v;
  else
    c[r * N + q] = v;
  __syncthreads();
  if (threadIdx.x == 0 && threadIdx.y == 0)
    asm volatile("st.global.release.gpu.b32 [%0], %1;" ::"l"(my), "r"(s + 1 == S ? 0 : s + 1)
                 : "memory");
}
extern "C" __global__ void lookback_scan_own(const unsigned* x, unsigned* o, unsigned long long* st,
                                             unsigned* ticket, int n) {
  __shared__ unsigned tile, pre, w[8];
  if (threadIdx.x == 0) tile = atomicAdd(ticket, 1);
  __syncthreads();
  unsigned t = tile;
  int i = t * 256 + threadIdx.x;
  unsigned v = i < n ? x[i] : 0, s = v;
  for (int d = 1; d < 32; d <<= 1) {
    unsigned u = __shfl_up_sync(~0u, s, d);
    if (threadIdx.x % 32 >= d) s += u;
  }
  if (threadIdx.x % 32 == 31) w[threadIdx.x / 32] = s;
  __syncthreads();
  unsigned b = 0, tot = 0;
  for (int j = 0; j < 8; ++j) {
    if (j < threadIdx.x / 32) b += w[j];
    tot += w[j];
  }
  if (threadIdx.x == 0) {
    atomicExch(st + t, (1ull << 62) | tot);
    unsigned p = 0;
    for (int j = (int)t - 1; j >= 0;) {
      unsigned long long q = *(volatile unsigned long long*)(st + j);
      if (q >> 62 == 2) {
        p += (unsigned)q;
        break;
      }
      if (q >> 62 == 1) {
        p += (unsigned)q;
        --j;
      }
    }
    atomicExch(st + t, (2ull << 62) | (p + tot));
    pre = p;
  }
  __syncthreads();
  if (i < n) o[i] = pre + b + s;
}
#define AQ(p, x) asm volatile("ld.acquire.gpu.b32 %0, [%1];" : "=r"(x) : "l"(p) : "memory")
#define RL(p, x) asm volatile("st.release.gpu.b32 [%0], %1;" ::"l"(p), "r"(x) : "memory")
extern "C" __global__ void producer_consumer_blocks(int* ring, int* head, int* tail, long long* out,
                                                    int n) {
  const int S = 4;
  if (blockIdx.x == 0) {
    long long s = 0;
    for (int i = 0; i < n; ++i) {
      if (threadIdx.x == 0) {
        int h;
        do AQ(head, h);
        while (h <= i);
      }
      __syncthreads();
      s += ring[i % S * 32 + threadIdx.x] * (i + 1);
      __syncthreads();
      if (threadIdx.x == 0) RL(tail, i + 1);
    }
    out[threadIdx.x] = s;
  } else
    for (int i = 0; i < n; ++i) {
      if (threadIdx.x == 0) {
        int t;
        do AQ(tail, t);
        while (i - t >= S);
      }
      __syncthreads();
      ring[i % S * 32 + threadIdx.x] = i * 3 + threadIdx.x;
      __syncthreads();
      if (threadIdx.x == 0) RL(head, i + 1);
    }
}
extern "C" __global__ void persistent_queue(const int* work, long long* out, int* head, int n) {
  __shared__ int item;
  for (;;) {
    if (threadIdx.x == 0) item = atomicAdd(head, 1);
    __syncthreads();
    int it = item;
    __syncthreads();
    if (it >= n) break;
    long long s = 0;
    for (int i = threadIdx.x; i < work[it]; i += blockDim.x) s += (long long)i * i;
    for (int d = 16; d; d >>= 1) s += __shfl_down_sync(~0u, s, d);
    if (threadIdx.x % 32 == 0) atomicAdd((unsigned long long*)out + it, (unsigned long long)s);
  }
}
