// free() is called twice.
// launch: grid=1 block=1 args=i32*1:zeros
extern "C" __global__ void bug(int* y) {
  int* p = static_cast<int*>(malloc(64));
  p[0] = 7;
  y[0] = p[0];
  free(p);
  free(p);                                  // FINDS use-after-free
}
