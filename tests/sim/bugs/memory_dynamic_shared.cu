// The launch gives less dynamic shared memory than the kernel uses.
// launch: grid=1 block=64 shared=128 args=f32*64:zeros
extern "C" __global__ void bug(float* y) {
  extern __shared__ float s[];
  s[threadIdx.x] = 1;                       // FINDS bounds
  __syncthreads();
  y[threadIdx.x] = s[63 - threadIdx.x];
}
