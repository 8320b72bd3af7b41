// Lanes store four floats each, and other lanes of the warp load them one by one.
// launch: grid=1 block=32 args=f32*128:zeros,f32*128:zeros
extern "C" __global__ void bug(float* x, float* y) {
  int i = threadIdx.x;
  reinterpret_cast<float4*>(x)[i] = make_float4(i, i + 1, i + 2, i + 3);   // FINDS race
  float sum = 0;
  for (int k = 0; k < 4; ++k) sum += x[k * 32 + i];                        // FINDS race
  y[i] = sum;
}
