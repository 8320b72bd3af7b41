// A tile is transposed in place, read and written in the same phase.
// launch: grid=1 block=8x8 args=f32*64:iota
extern "C" __global__ void bug(float* x) {
  __shared__ float t[8][8];
  int r = threadIdx.y, c = threadIdx.x;
  t[r][c] = x[r * 8 + c];
  __syncthreads();
  float v = t[c][r];                    // FINDS race
  t[r][c] = v;                          // FINDS race
  __syncthreads();
  x[r * 8 + c] = t[r][c];
}
