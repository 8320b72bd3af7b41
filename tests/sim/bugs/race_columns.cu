// Columns of a matrix whose rows are a page apart; the last one of a block is the next one's too.
// launch: grid=2 block=32x4 args=f32*65536:zeros
extern "C" __global__ void bug(float* x) {
  int column = blockIdx.x * 3 + threadIdx.y;
  x[threadIdx.x * 1024 + column] = blockIdx.x + 1; // FINDS race
}
