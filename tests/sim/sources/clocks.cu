// Clocks, timers, sleeping and special registers.
extern "C" __global__ void clocks(long long* c, unsigned* u) {
  long long start = clock64();
  __nanosleep(100);
  c[threadIdx.x] = clock64() - start + clock();
  u[threadIdx.x] = gridDim.x + blockIdx.z * blockDim.y + threadIdx.z + warpSize;
  if (u[threadIdx.x] == 12345) __trap();
}
