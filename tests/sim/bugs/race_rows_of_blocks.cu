// Blocks of 48 threads write rows that begin a thread too early.
// launch: grid=3 block=48 args=f32*192:zeros
extern "C" __global__ void bug(float* x) {
  int i = blockIdx.x * 47 + threadIdx.x;
  x[i] = blockIdx.x + 1;                           // FINDS race
}
