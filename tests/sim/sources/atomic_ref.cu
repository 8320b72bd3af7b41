// libcu++ atomics with memory orders.
#include <cuda/atomic>
extern "C" __global__ void atomic_ref(int* i, unsigned long long* l, float* f) {
  cuda::atomic_ref<int, cuda::thread_scope_device> a(*i);
  a.fetch_add(1, cuda::memory_order_relaxed);
  a.fetch_max(3, cuda::memory_order_acq_rel);
  int expected = 1;
  a.compare_exchange_strong(expected, 2, cuda::memory_order_acquire);
  a.store(a.load(cuda::memory_order_acquire) + 1, cuda::memory_order_release);
  cuda::atomic_ref<unsigned long long, cuda::thread_scope_block> b(*l);
  b.fetch_or(8);
  b.exchange(4);
  cuda::atomic_ref<float, cuda::thread_scope_system> c(*f);
  c.fetch_add(1.0f);
  cuda::atomic_thread_fence(cuda::memory_order_seq_cst, cuda::thread_scope_device);
}
