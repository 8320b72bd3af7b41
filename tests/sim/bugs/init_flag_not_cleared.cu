// "Did any thread find it?" in shared memory, set by whoever did, cleared by nobody.
// launch: grid=1 block=64 args=i32*64:iota,i32*64:zeros
extern "C" __global__ void bug(const int* x, int* y) {
  __shared__ int found;
#ifdef FIXED
  if (threadIdx.x == 0) found = 0;
  __syncthreads();
#endif
  if (x[threadIdx.x] >= 1000) found = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = found;  // FINDS init
}
