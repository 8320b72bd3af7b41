// Block 1 waits for a flag, but nothing orders the data before the flag.
// launch: grid=2 block=32 cooperative args=i32*32:zeros,i32*1:zeros,i32*32:zeros
extern "C" __global__ void bug(int* data, volatile int* flag, int* out) {
  int i = threadIdx.x;
  if (blockIdx.x == 0) {
    data[i] = i + 1;                        // FINDS race
    __syncthreads();
    if (i == 0) *flag = 1;
  } else {
    while (*flag == 0) {}
    out[i] = data[i];                       // FINDS race
  }
}
