// printf() shows an element of a local array that no path has assigned.
// launch: grid=1 block=1 args=i32*4:zeros
extern "C" __global__ void bug(const int* x) {
  int v[4];
#pragma unroll 1
  for (int i = 0; i < 3; ++i) v[x[i] + i] = i;
#ifdef FIXED
  v[3] = 3;
#endif
  printf("%d\n", v[x[3] + 3]);  // FINDS init
}
