// The grid is larger than the array and nothing guards it.
// launch: grid=3 block=32 args=f32*80:zeros
extern "C" __global__ void bug(float* x) {
  x[blockIdx.x * 32 + threadIdx.x] = 1;     // FINDS bounds
}
