// vote, match, redux, activemask and lane masks.
extern "C" __global__ void votes(int* x, unsigned* u, unsigned long long* l) {
  int t = threadIdx.x, v = x[t], all;
  u[t] = __ballot_sync(~0u, v > 0) + __any_sync(~0u, v > 5) + __all_sync(~0u, v > 5) + __activemask();
  u[t] += __match_any_sync(~0u, v) + __match_any_sync(~0u, l[t]) + __match_all_sync(~0u, v, &all) + all;
  if (t & 1) __syncwarp(0xaaaaaaaau);
  u[t] += __reduce_add_sync(~0u, u[t]) + __reduce_min_sync(~0u, u[t]) + __reduce_and_sync(~0u, u[t]) +
          __reduce_xor_sync(~0u, u[t]);
  x[t] = __reduce_max_sync(~0u, v);
}
