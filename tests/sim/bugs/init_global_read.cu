// An array that was allocated and never filled is read.
// launch: grid=1 block=64 args=f32*64:raw,f32*64:zeros
extern "C" __global__ void bug(const float* x, float* y) {
  y[threadIdx.x] = 2 * x[threadIdx.x];      // FINDS init
}
