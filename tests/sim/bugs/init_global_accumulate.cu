// += on an output that nobody cleared.
// launch: grid=1 block=64 args=f32*64:iota,f32*64:raw
extern "C" __global__ void bug(const float* x, float* y) {
  y[threadIdx.x] += x[threadIdx.x];         // FINDS init
}
