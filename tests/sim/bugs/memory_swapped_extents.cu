// A picture of 24 x 40 pixels whose row and column change places in the index.
// launch: grid=2x5 block=16x8 args=f32*960:zeros,i32:24,i32:40
extern "C" __global__ void bug(float* y, int width, int height) {
  int column = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 8 + threadIdx.y;
  if (column >= width || row >= height) return;
#ifdef FIXED
  y[row * width + column] = 1;
#else
  y[column * height + row + width] = 1;  // FINDS bounds
#endif
}
