// The first warp adds up 32 partial sums; a small block has left fewer.
// launch: grid=1 block=96 args=i32*96:iota,i32*1:zeros
extern "C" __global__ void bug(const int* x, int* y) {
  __shared__ int part[32];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int v = __reduce_add_sync(0xffffffffu, x[threadIdx.x]);
  if (lane == 0) part[warp] = v;
  __syncthreads();
  if (warp != 0) return;
#ifdef FIXED
  v = lane < 3 ? part[lane] : 0;
#else
  v = part[lane];  // FINDS init
#endif
  v = __reduce_add_sync(0xffffffffu, v);
  if (lane == 0) y[0] = v;
}
