// A flag between blocks, with a fence that reaches its own block only.
// launch: grid=2 block=1 cooperative args=i32*2:zeros,i32*1:zeros
extern "C" __global__ void bug(int* data, int* out) {
  volatile int* flag = data + 1;
  if (blockIdx.x == 0) {
    data[0] = 42;  // FINDS race
    __threadfence_block();
    *flag = 1;
  } else {
    while (*flag == 0) {
    }
    __threadfence();
    out[0] = data[0];  // FINDS race
  }
}
