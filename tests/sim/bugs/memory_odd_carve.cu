// Dynamic shared memory: doubles begin right behind an odd number of ints.
// launch: grid=1 block=32 shared=512 args=f32*32:zeros,i32:33
extern "C" __global__ void bug(float* y, int n) {
  extern __shared__ char space[];
  int* counts = reinterpret_cast<int*>(space);
#ifdef FIXED
  double* sums = reinterpret_cast<double*>(space + (n * sizeof(int) + 7) / 8 * 8);
#else
  double* sums = reinterpret_cast<double*>(counts + n);
#endif
  counts[threadIdx.x] = threadIdx.x;
  sums[threadIdx.x] = 1;  // FINDS alignment
  y[threadIdx.x] = counts[threadIdx.x] + sums[threadIdx.x];
}
