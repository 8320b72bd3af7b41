// Lanes of a warp exchange through shared memory as if they ran in lockstep.
// launch: grid=1 block=32 args=i32*32:iota,i32*32:zeros
extern "C" __global__ void bug(const int* x, int* y) {
  __shared__ int s[32];
  int i = threadIdx.x;
  s[i] = x[i];                          // FINDS race
  y[i] = s[31 - i];                     // FINDS race
}
