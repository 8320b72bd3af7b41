// Every block adds to one float with a plain read and write.
// launch: grid=4 block=32 args=f32*1:zeros
extern "C" __global__ void bug(float* sum) {
  if (threadIdx.x == 0) sum[0] += 1.0f;     // FINDS race
}
