// The last byte of a buffer is left out.
// launch: grid=1 block=32 args=u8*64:raw,u8*64:zeros
extern "C" __global__ void bug(unsigned char* x, unsigned char* y) {
  int i = threadIdx.x;
  x[i] = i;
  if (i != 31) x[i + 32] = i;
  __syncthreads();
  y[i + 32] = x[i + 32];                    // FINDS init
}
