// Rows with a column of padding against bank conflicts are read four floats at a time, padding too.
// launch: grid=1 block=32 args=f32*128:iota,f32*32:zeros
extern "C" __global__ void bug(const float* x, float* y) {
  __shared__ alignas(16) float tile[32][8];
  int i = threadIdx.x;
  for (int k = 0; k < 4; ++k) tile[i][k] = x[4 * i + k];
#ifdef FIXED
  tile[i][4] = 0;
#endif
  __syncthreads();
  float sum = 0;
#pragma unroll 1
  for (int k = 0; k < 5; ++k) sum += tile[31 - i][k];  // FINDS init
  y[i] = sum;
}
