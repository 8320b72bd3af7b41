// Only block 0 fills the table that each block has for itself.
// launch: grid=2 block=32 args=i32*64:zeros
extern "C" __global__ void bug(int* y) {
  __shared__ int table[32];
  if (blockIdx.x == 0) table[threadIdx.x] = threadIdx.x;
  __syncthreads();
  y[blockIdx.x * 32 + threadIdx.x] = table[31 - threadIdx.x];   // FINDS init
}
