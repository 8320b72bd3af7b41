// An index runs past a shared array.
// launch: grid=1 block=64 args=f32*64:zeros,i32:100
extern "C" __global__ void bug(float* y, int stride) {
  __shared__ float s[64];
  s[threadIdx.x * stride] = 1;              // FINDS bounds
  __syncthreads();
  y[threadIdx.x] = s[threadIdx.x];
}
