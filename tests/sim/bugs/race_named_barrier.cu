// The consumer waits at a named barrier that only half of the producers arrive at.
// launch: grid=1 block=128 args=f32*128:iota,f32*64:zeros
extern "C" __global__ void bug(const float* x, float* y) {
  __shared__ float s[128];
  int i = threadIdx.x;
  if (i < 64) {
    s[i] = x[i];                        // FINDS race
    if (i < 32) asm volatile("bar.arrive 1, 96;" ::: "memory");
  } else {
    asm volatile("bar.sync 1, 96;" ::: "memory");
    y[i - 64] = s[i - 64];              // FINDS race
  }
}
