// The array was freed before the launch.
// launch: grid=1 block=32 args=f32*32:freed,f32*32:zeros
extern "C" __global__ void bug(const float* x, float* y) {
  y[threadIdx.x] = x[threadIdx.x];          // FINDS use-after-free
}
