// The element before the first one of an array on the stack.
// launch: grid=1 block=1 args=i32*4:zeros
extern "C" __global__ void bug(int* y) {
  int last[4];
#pragma unroll 1
  for (int i = 0; i < 4; ++i) last[y[i] + i] = i;
#ifdef FIXED
  int at = y[0];
#else
  int at = y[0] - 1;
#endif
  y[1] = last[at];  // FINDS bounds
}
