// A ring's previous element by %, which is negative for the first one.
// launch: grid=1 block=32 args=i32*32:iota,i32*32:zeros,i32:32
extern "C" __global__ void bug(const int* x, int* y, int n) {
  int i = threadIdx.x;
#ifdef FIXED
  y[i] = x[(i - 1 + n) % n];
#else
  y[i] = x[(i - 1) % n];  // FINDS bounds
#endif
}
