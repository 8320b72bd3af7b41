// A stencil reads left of the first element.
// launch: grid=1 block=32 args=f32*32:iota,f32*32:zeros
extern "C" __global__ void bug(const float* x, float* y) {
  y[threadIdx.x] = x[static_cast<int>(threadIdx.x) - 1];    // FINDS bounds
}
