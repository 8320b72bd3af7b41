// An index runs past a local array.
// launch: grid=1 block=32 args=i32*32:zeros,i32:1000000
extern "C" __global__ void bug(int* y, int n) {
  int local[8];
#pragma unroll 1
  for (int k = 0; k < 8; ++k) local[(k * 3 + n) % 8] = k;
  y[threadIdx.x] = local[n + threadIdx.x];  // FINDS bounds
}
