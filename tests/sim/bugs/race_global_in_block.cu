// Threads of a block exchange through global memory without a barrier.
// launch: grid=1 block=128 args=i32*128:zeros,i32*128:zeros
extern "C" __global__ void bug(int* t, int* y) {
  int i = threadIdx.x;
  t[i] = i;                                 // FINDS race
  y[i] = t[127 - i];                        // FINDS race
}
