// The writer fills even elements only.
// launch: grid=1 block=32 args=f32*64:raw,f32*64:zeros
extern "C" __global__ void bug(float* x, float* y) {
  int i = threadIdx.x;
  x[2 * i] = i;
  __syncthreads();
  y[2 * i + 1] = x[2 * i + 1];              // FINDS init
}
