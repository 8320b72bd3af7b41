// An inclusive scan in a warp with __syncwarp() after the write but none after the read.
// launch: grid=1 block=32 args=i32*32:iota,i32*32:zeros
extern "C" __global__ void bug(const int* x, int* y) {
  __shared__ int s[32];
  int i = threadIdx.x;
  s[i] = x[i];
  __syncwarp();
#pragma unroll 1
  for (int d = 1; d < 32; d <<= 1) {
    int v = i >= d ? s[i - d] : 0;      // FINDS race
    s[i] += v;                          // FINDS race
    __syncwarp();
  }
  y[i] = s[i];
}
