// Memory of malloc() in device code holds anything.
// launch: grid=1 block=32 args=i32*32:zeros
extern "C" __global__ void bug(int* y) {
  int* p = static_cast<int*>(malloc(4 * sizeof(int)));
  p[threadIdx.x % 2] = 1;
  y[threadIdx.x] = p[2 + threadIdx.x % 2];  // FINDS init
  free(p);
}
