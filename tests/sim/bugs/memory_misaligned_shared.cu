// float2 in shared memory at an odd element.
// launch: grid=1 block=8 args=f32*8:zeros
extern "C" __global__ void bug(float* y) {
  __shared__ float s[32];
  s[threadIdx.x] = 1;
  s[threadIdx.x + 8] = 1;
  s[threadIdx.x + 16] = 1;
  __syncthreads();
  float2 v = *reinterpret_cast<float2*>(&s[2 * threadIdx.x + 1]);              // FINDS alignment
  y[threadIdx.x] = v.x + v.y;
}
