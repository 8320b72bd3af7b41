// Matrix product, 64x64 tile, 4x4 results for each thread.
extern "C" __global__ void __launch_bounds__(256)
sgemm_register_blocked(const float* __restrict__ a, const float* __restrict__ b, float* c, int n) {
  __shared__ float4 ta[8][16], tb[8][16];
  int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  float sum[4][4] = {};
  for (int t = 0; t < n; t += 8) {
    if (threadIdx.x < 128) {
      int k = threadIdx.x / 16, q = threadIdx.x % 16;
      ta[k][q] = make_float4(a[(blockIdx.y * 64 + q * 4) * n + t + k],
                             a[(blockIdx.y * 64 + q * 4 + 1) * n + t + k],
                             a[(blockIdx.y * 64 + q * 4 + 2) * n + t + k],
                             a[(blockIdx.y * 64 + q * 4 + 3) * n + t + k]);
      tb[k][q] = reinterpret_cast<const float4*>(b + (t + k) * n + blockIdx.x * 64)[q];
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      float4 av = ta[k][ty], bv = tb[k][tx];
      float aa[4] = {av.x, av.y, av.z, av.w}, bb[4] = {bv.x, bv.y, bv.z, bv.w};
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) sum[i][j] += aa[i] * bb[j];
    }
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i) {
    float4 v = make_float4(sum[i][0], sum[i][1], sum[i][2], sum[i][3]);
    reinterpret_cast<float4*>(c + (blockIdx.y * 64 + ty * 4 + i) * n + blockIdx.x * 64)[tx] = v;
  }
}
