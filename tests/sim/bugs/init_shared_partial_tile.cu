// The last tile is partial, the product runs over all of it.
// launch: grid=1 block=64 args=f32*48:iota,f32*1:zeros,i32:48
extern "C" __global__ void bug(const float* x, float* y, int n) {
  __shared__ float s[64];
  int i = threadIdx.x;
  if (i < n) s[i] = x[i];
  __syncthreads();
  if (i == 0) {
    float sum = 0;
    for (int k = 0; k < 64; ++k) sum += s[k];    // FINDS init
    y[0] = sum;
  }
}
