// "The last block adds it all up" without the fence that makes the parts visible.
// launch: grid=4 block=32 args=f32*4:zeros,i32*1:zeros,f32*1:zeros
extern "C" __global__ void bug(float* part, int* count, float* out) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    part[blockIdx.x] = blockIdx.x;          // FINDS race
    last = atomicAdd(count, 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    float sum = 0;
    for (int b = 0; b < gridDim.x; ++b) sum += part[b];   // FINDS race
    out[0] = sum;
  }
}
