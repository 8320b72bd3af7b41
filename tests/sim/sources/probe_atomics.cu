// Atomics of every operation, width and scope; cuda::atomic in every order.
#include <cuda/atomic>
#define KERNEL(name) extern "C" __global__ void name
KERNEL(atomics_of_scopes)(int* s, unsigned* u, unsigned long long* l, float* f, double* d) {
#define ALL(x)                                                                                                        \
  s[1] = atomicAdd##x(s, 1) + atomicMin##x(s, 2) + atomicMax##x(s, 3) + atomicAnd##x(s, 4) + atomicOr##x(s, 5) + atomicXor##x(s, 6) + \
         atomicExch##x(s, 7) + atomicCAS##x(s, 8, 9);                                                                 \
  u[1] = atomicInc##x(u, 5) + atomicDec##x(u, 6) + atomicAdd##x(u, 1u) + atomicMin##x(u, 2u) + atomicMax##x(u, 3u) + atomicExch##x(u, 4u); \
  l[1] = atomicAdd##x(l, 1ull) + atomicMin##x(l, 2ull) + atomicMax##x(l, 3ull) + atomicAnd##x(l, 4ull) + atomicOr##x(l, 5ull) + \
         atomicXor##x(l, 6ull) + atomicExch##x(l, 7ull) + atomicCAS##x(l, 8ull, 9ull);                                \
  f[1] = atomicAdd##x(f, 1.5f) + atomicExch##x(f, 2.5f);                                                             \
  d[1] = atomicAdd##x(d, 1.5);
  ALL()
  ALL(_block)
  ALL(_system)
#undef ALL
}
KERNEL(reductions)(int* s, unsigned* u, unsigned long long* l, float* f, double* d, long long* q) {
  atomicAdd(s, 1); atomicMin(s, 2); atomicMax(s, 3); atomicAnd(s, 4); atomicOr(s, 5); atomicXor(s, 6);
  atomicInc(u, 5); atomicDec(u, 6); atomicMin(u, 7u); atomicMax(u, 8u);
  atomicAdd(l, 1ull); atomicMin(q, 2ll); atomicMax(q, 3ll); atomicAnd(l, 4ull);
  atomicAdd(f, 1.f); atomicAdd(d, 2.);
}
KERNEL(shared_atomics)(int* out) {
  __shared__ int s[4];
  __shared__ unsigned long long l;
  __shared__ float f;
  __shared__ unsigned short h;
  s[threadIdx.x & 3] = 0;
  __syncthreads();
  atomicAdd(s, 1); atomicMax(s + 1, (int)threadIdx.x); atomicAdd(&l, 3ull); atomicAdd(&f, 1.f);
  out[threadIdx.x] = atomicCAS(s + 2, 0, 1) + atomicExch(s + 3, 4) + atomicCAS(&h, 0, 1);
}
KERNEL(inline_atomics)(unsigned* u, unsigned long long* l) {
  unsigned r;
  asm volatile("atom.acq_rel.gpu.global.cas.b32 %0, [%1], 1, 2;" : "=r"(r) : "l"(u) : "memory");
  asm volatile("atom.global.acquire.sys.exch.b32 %0, [%1], %0; red.release.gpu.global.add.u32 [%1], 1;" : "+r"(r) : "l"(u) : "memory");
  asm volatile("{ .reg .b16 h; atom.cas.b16 h, [%0], 1, 2; }" ::"l"(u) : "memory");
  asm volatile("red.global.add.noftz.f16x2 [%0], %1; atom.global.add.noftz.f16x2 %1, [%0], %1;" ::"l"(u), "r"(r) : "memory");
  u[1] = r;
}
template <typename T, cuda::thread_scope S>
__device__ T orders(cuda::atomic<T, S>* a, T x) {
  using namespace cuda::std;
  T r = a->load(memory_order_relaxed) + a->load(memory_order_acquire) + a->load();
  a->store(x, memory_order_relaxed);
  a->store(x, memory_order_release);
  a->store(x);
  r += a->exchange(x, memory_order_acq_rel) + a->fetch_add(x, memory_order_relaxed) + a->fetch_sub(x, memory_order_release);
  T expected = x;
  a->compare_exchange_strong(expected, r, memory_order_acq_rel, memory_order_acquire);
  a->compare_exchange_weak(expected, r);
  return r + expected + a->fetch_max(x) + a->fetch_min(x, memory_order_relaxed);
}
KERNEL(orders_i32)(cuda::atomic<int, cuda::thread_scope_device>* a, cuda::atomic<int, cuda::thread_scope_block>* b) { orders(a, 1); orders(b, 2); }
KERNEL(orders_u64)(cuda::atomic<unsigned long long, cuda::thread_scope_system>* a) { orders(a, 1ull); }
KERNEL(orders_small)(cuda::atomic<unsigned char, cuda::thread_scope_device>* c, cuda::atomic<short, cuda::thread_scope_device>* h) {
  c->fetch_add(1);
  h->fetch_or(3);
  h->exchange(2);
}
KERNEL(orders_float)(cuda::atomic<float, cuda::thread_scope_device>* f, cuda::atomic<double, cuda::thread_scope_block>* d) {
  f->fetch_add(1.5f);
  d->fetch_add(2.5);
  d->exchange(1.0);
}
KERNEL(flags)(cuda::std::atomic_flag* flag, int* x) {
  while (flag->test_and_set(cuda::std::memory_order_acquire)) {}
  ++*x;
  flag->clear(cuda::std::memory_order_release);
  cuda::atomic_thread_fence(cuda::std::memory_order_seq_cst, cuda::thread_scope_device);
}
KERNEL(waiting)(cuda::atomic<int, cuda::thread_scope_device>* a) {
  a->wait(0);
  a->notify_all();
}
