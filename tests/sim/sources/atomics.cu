// Atomic operations on global and shared memory.
extern "C" __global__ void atomics(int* i, unsigned* u, unsigned long long* l, float* f, double* d,
                                   unsigned short* h, long long* s) {
  __shared__ int si[4];
  __shared__ float sf;
  __shared__ unsigned long long sl;
  if (threadIdx.x < 4) si[threadIdx.x] = 0;
  if (threadIdx.x == 0) sf = 0, sl = 0;
  __syncthreads();
  int t = threadIdx.x;
  atomicAdd(&si[t & 3], t);
  atomicMax(&si[0], t);
  atomicAdd(&sf, 1.0f);
  atomicAdd(&sl, 3ull);
  u[t] = atomicInc(&u[0], 7) + atomicDec(&u[1], 5) + atomicExch(&u[2], t);
  i[t] = atomicAdd(&i[0], t) + atomicSub(&i[1], t) + atomicMin(&i[2], t) + atomicMax(&i[3], t);
  i[t] += atomicAnd(&i[4], t) + atomicOr(&i[5], t) + atomicXor(&i[6], t) + atomicCAS(&i[7], 0, t);
  u[t] += atomicMin(&u[3], t) + atomicMax(&u[4], t);
  l[t] = atomicAdd(&l[0], t) + atomicCAS(&l[1], 0ull, 1ull) + atomicExch(&l[2], 4ull) + atomicAnd(&l[3], 1ull) +
         atomicMax(&l[4], 1ull);
  s[t] = atomicMin(&s[0], 5ll) + atomicMax(&s[1], -5ll);
  f[t] = atomicAdd(&f[0], 1.5f) + atomicExch(&f[1], 2.0f);
  d[t] = atomicAdd(&d[0], 1.5);
  h[t] = atomicCAS(&h[0], (unsigned short)0, (unsigned short)1);
  atomicAdd_block(&i[8], 1);
  atomicAdd_system(&i[9], 1);
  __syncthreads();
  if (t < 4) i[10 + t] = si[t];
}
extern "C" __global__ void spin_lock(int* lock, volatile int* count) {
  while (atomicCAS(lock, 0, 1) != 0) {}
  __threadfence();
  *count = *count + 1;
  __threadfence();
  atomicExch(lock, 0);
  __threadfence_block();
  __threadfence_system();
}
