// float4 from an address that is a multiple of four bytes only.
// launch: grid=1 block=8 args=f32*40:zeros,f32*8:zeros
extern "C" __global__ void bug(const float* x, float* y) {
  float4 v = *reinterpret_cast<const float4*>(x + 4 * threadIdx.x + 1);        // FINDS alignment
  y[threadIdx.x] = v.x + v.w;
}
