// Three elements of a vector are written, the product reads the fourth one too.
// launch: grid=1 block=64 args=f32*64:iota,f32*64:zeros
extern "C" __global__ void bug(const float* x, float* y) {
  __shared__ float4 s[64];
  int i = threadIdx.x;
  s[i].x = x[i];
  s[i].y = 2;
  s[i].z = 3;
  __syncthreads();
  float4 v = s[63 - i];  // FINDS init
#ifdef FIXED
  y[i] = v.x * v.y + v.z;
#else
  y[i] = v.x * v.y + v.w;
#endif
}
