// Atomic operations whose result does not depend on the order of the threads.
extern "C" __global__ void atomic_totals(int* i, unsigned* u, unsigned long long* l, float* f, double* d) {
  __shared__ int shared_i[4];
  __shared__ unsigned long long shared_l[2];
  __shared__ float shared_f;
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x < 4) shared_i[threadIdx.x] = threadIdx.x == 1 ? 1 << 30 : 0;
  if (threadIdx.x < 2) shared_l[threadIdx.x] = 0;
  if (threadIdx.x == 0) shared_f = 0;
  __syncthreads();
  atomicAdd(i, t);
  atomicSub(i + 1, 2 * t);
  atomicMin(i + 2, 7 - t);
  atomicMax(i + 3, t * 3);
  atomicAnd(i + 4, ~(1 << (t & 15)));
  atomicOr(i + 5, 1 << (t % 20));
  atomicXor(i + 6, t * 77);
  for (int old = i[7], seen = ~old; old != seen;) {
    seen = old;
    old = atomicCAS(i + 7, seen, seen + 5);
  }
  atomicInc(u, 10);
  atomicDec(u + 1, 12);
  atomicMin(u + 2, 5u + t);
  atomicMax(u + 3, 1u << (t & 31));
  atomicAdd(l, 1ull << 33);
  atomicMin(l + 1, 1000ull + t);
  atomicMax(l + 2, (unsigned long long)t << 34);
  atomicAnd(l + 3, ~(1ull << (t & 63)));
  atomicOr(l + 4, 1ull << (t % 60));
  atomicXor(l + 5, (unsigned long long)t << 20);
  atomicAdd(f, 0.5f * t);
  atomicAdd(d, 0.25 * t);
  atomicAdd(&shared_i[0], t);
  atomicMin(&shared_i[1], -t);
  atomicMax(&shared_i[2], t);
  atomicOr(&shared_i[3], t);
  atomicAdd(&shared_l[0], 3ull);
  atomicMax(&shared_l[1], (unsigned long long)t << 40);
  atomicAdd(&shared_f, 2.0f);
  __syncthreads();
  if (threadIdx.x < 4) i[8 + blockIdx.x * 4 + threadIdx.x] = shared_i[threadIdx.x];
  if (threadIdx.x < 2) l[6 + blockIdx.x * 2 + threadIdx.x] = shared_l[threadIdx.x];
  if (threadIdx.x == 0) f[1 + blockIdx.x] = shared_f;
}
