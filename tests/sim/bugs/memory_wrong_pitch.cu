// Rows are addressed with the wrong pitch; the last row leaves the array.
// launch: grid=1 block=8x8 args=f32*64:zeros
extern "C" __global__ void bug(float* x) {
  x[threadIdx.y * 9 + threadIdx.x] = 1;     // FINDS bounds
}
