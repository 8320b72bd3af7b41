// Pairs of floats are stored over the end of a neighbour's four.
// launch: grid=1 block=32 args=f32*256:zeros
extern "C" __global__ void bug(float* x) {
  int i = threadIdx.x / 2 * 8 + threadIdx.x % 2 * 4;
  float4* all = reinterpret_cast<float4*>(x + i);
  float2* pair = reinterpret_cast<float2*>(x + i + 6);
  *all = make_float4(i, i, i, i);                          // FINDS race
  if (threadIdx.x % 2 == 0) *pair = make_float2(1, 2);     // FINDS race
}
