// The grid's stride is one element too short: neighbouring blocks share one.
// launch: grid=4 block=32 args=f32*128:zeros
extern "C" __global__ void bug(float* x) {
  int i = blockIdx.x * (blockDim.x - 1) + threadIdx.x;
  x[i] = blockIdx.x;                        // FINDS race
}
