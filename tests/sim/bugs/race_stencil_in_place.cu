// A stencil reads its neighbours in global memory and overwrites its own element in the same array.
// launch: grid=1 block=128 args=f32*128:iota
extern "C" __global__ void bug(float* x) {
  int i = threadIdx.x;
  float left = x[i > 0 ? i - 1 : i], right = x[i < 127 ? i + 1 : i];  // FINDS race
#ifdef FIXED
  __syncthreads();
#endif
  x[i] = 0.5f * (left + right);  // FINDS race
}
