// Shared memory is read though nothing was put there.
// launch: grid=1 block=64 args=f32*64:zeros
extern "C" __global__ void bug(float* y) {
  __shared__ float s[64];
  if (threadIdx.x > 1000) s[threadIdx.x % 64] = 1;
  __syncthreads();
  y[threadIdx.x] = s[threadIdx.x];          // FINDS init
}
