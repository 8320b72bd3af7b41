// Memory of malloc() in device code is used after free().
// launch: grid=1 block=1 args=i32*1:zeros
extern "C" __global__ void bug(int* y) {
  int* p = static_cast<int*>(malloc(64));
  p[0] = 7;
  free(p);
  y[0] = *static_cast<volatile int*>(p);    // FINDS use-after-free
}
