// The filling loop stops one block short.
// launch: grid=1 block=64 args=f32*128:raw,f32*1:zeros
extern "C" __global__ void bug(float* x, float* y) {
  int i = threadIdx.x;
  x[i] = i;
  if (i < 63) x[i + 64] = i;
  __syncthreads();
  if (i == 0) {
    float sum = 0;
    for (int k = 0; k < 128; ++k) sum += x[k];   // FINDS init
    y[0] = sum;
  }
}
