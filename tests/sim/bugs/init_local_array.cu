// A local array is filled up to n and read beyond.
// launch: grid=1 block=32 args=i32*32:zeros,i32:5
extern "C" __global__ void bug(int* y, int n) {
  int local[16];
#pragma unroll 1
  for (int k = 0; k < n; ++k) local[k * 7 % 16] = k + threadIdx.x;
  y[threadIdx.x] = local[(n + threadIdx.x) % 2 + 1];      // FINDS init
}
