// A scan step adds to the element that a neighbour reads, with one barrier where it takes two.
// launch: grid=1 block=64 args=i32*64:iota
extern "C" __global__ void bug(int* y) {
  __shared__ int s[64];
  int i = threadIdx.x;
  s[i] = y[i];
  __syncthreads();
  for (int d = 1; d < 64; d *= 2) {
#ifdef FIXED
    int add = i >= d ? s[i - d] : 0;
    __syncthreads();
    s[i] += add;
#else
    if (i >= d) s[i] += s[i - d];  // FINDS race
#endif
    __syncthreads();
  }
  y[i] = s[i];
}
