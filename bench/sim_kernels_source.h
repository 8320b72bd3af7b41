// The CUDA sources of the kernels for sim_kernels.cpp.
#pragma once

namespace {

inline constexpr char kSource[] = R"cuda(
extern "C" __global__ void saxpy(float a, const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += a * x[i];
}
extern "C" __global__ void sgemm(const float* a, const float* b, float* c, int n) {
  __shared__ float ta[16][16], tb[16][16];
  int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
  float sum = 0;
  for (int t = 0; t < n; t += 16) {
    ta[threadIdx.y][threadIdx.x] = a[row * n + t + threadIdx.x];
    tb[threadIdx.y][threadIdx.x] = b[(t + threadIdx.y) * n + col];
    __syncthreads();
    for (int k = 0; k < 16; ++k) sum += ta[threadIdx.y][k] * tb[k][threadIdx.x];
    __syncthreads();
  }
  c[row * n + col] = sum;
}
extern "C" __global__ void __launch_bounds__(256) sgemm_blocked(const float* a, const float* b,
                                                                float* c, int n) {
  __shared__ float ta[16][64], tb[16][64];
  int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  int row = blockIdx.y * 64, col = blockIdx.x * 64;
  float sum[4][4] = {};
  for (int t = 0; t < n; t += 16) {
    int r = threadIdx.x / 4, k = threadIdx.x % 4 * 4;
    float4 x = *(const float4*)&a[(row + r) * n + t + k];
    ta[k][r] = x.x, ta[k + 1][r] = x.y, ta[k + 2][r] = x.z, ta[k + 3][r] = x.w;
    *(float4*)&tb[ty][tx * 4] = *(const float4*)&b[(t + ty) * n + col + tx * 4];
    __syncthreads();
    for (int k = 0; k < 16; ++k) {
      float4 x = *(const float4*)&ta[k][ty * 4], y = *(const float4*)&tb[k][tx * 4];
      float left[4] = {x.x, x.y, x.z, x.w}, right[4] = {y.x, y.y, y.z, y.w};
      for (int i = 0; i < 4; ++i) {
        for (int j = 0; j < 4; ++j) sum[i][j] += left[i] * right[j];
      }
    }
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i) {
    float4 out = {sum[i][0], sum[i][1], sum[i][2], sum[i][3]};
    *(float4*)&c[(row + ty * 4 + i) * n + col + tx * 4] = out;
  }
}
extern "C" __global__ void mma(const unsigned* a, const unsigned* b, float* c, int rounds) {
  int lane = threadIdx.x % 32;
  unsigned x[4], y[2];
  float sum[4] = {};
  for (int i = 0; i < 4; ++i) x[i] = a[i * 32 + lane];
  for (int i = 0; i < 2; ++i) y[i] = b[i * 32 + lane];
  for (int r = 0; r < rounds; ++r) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
  }
  int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  for (int i = 0; i < 4; ++i) c[warp * 128 + i * 32 + lane] = sum[i];
}
extern "C" __global__ void transpose(const float* x, float* y, int n) {
  int column = blockIdx.x * 32 + threadIdx.x;
  for (int row = blockIdx.y * 32 + threadIdx.y; row < blockIdx.y * 32 + 32; row += 8) {
    y[column * n + row] = x[row * n + column];
  }
}
extern "C" __global__ void transpose_tiled(const float* x, float* y, int n) {
  __shared__ float tile[32][33];
  int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 32 + threadIdx.y;
  for (int i = 0; i < 32; i += 8) tile[threadIdx.y + i][threadIdx.x] = x[(row + i) * n + column];
  __syncthreads();
  column = blockIdx.y * 32 + threadIdx.x, row = blockIdx.x * 32 + threadIdx.y;
  for (int i = 0; i < 32; i += 8) y[(row + i) * n + column] = tile[threadIdx.x][threadIdx.y + i];
}
extern "C" __global__ void reduce(const float* x, float* out, int n) {
  __shared__ float partial[32];
  float sum = 0;
  int first = blockIdx.x * blockDim.x + threadIdx.x;
  for (int i = first; i < n; i += gridDim.x * blockDim.x) sum += x[i];
  for (int d = 16; d; d >>= 1) sum += __shfl_xor_sync(~0u, sum, d);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x < 32) {
    sum = threadIdx.x < blockDim.x / 32 ? partial[threadIdx.x] : 0.0f;
    for (int d = 16; d; d >>= 1) sum += __shfl_xor_sync(~0u, sum, d);
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
  }
}
extern "C" __global__ void softmax(const float* x, float* y, int n) {
  extern __shared__ float red[];
  x += blockIdx.x * n;
  y += blockIdx.x * n;
  float m = -3.4e38f;
  for (int i = threadIdx.x; i < n; i += blockDim.x) m = fmaxf(m, x[i]);
  red[threadIdx.x] = m;
  __syncthreads();
  for (int s = blockDim.x / 2; s; s >>= 1) {
    if (threadIdx.x < s) red[threadIdx.x] = fmaxf(red[threadIdx.x], red[threadIdx.x + s]);
    __syncthreads();
  }
  m = red[0];
  __syncthreads();
  float sum = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += expf(x[i] - m);
  red[threadIdx.x] = sum;
  __syncthreads();
  for (int s = blockDim.x / 2; s; s >>= 1) {
    if (threadIdx.x < s) red[threadIdx.x] += red[threadIdx.x + s];
    __syncthreads();
  }
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = expf(x[i] - m) / red[0];
}
)cuda";

}  // namespace
