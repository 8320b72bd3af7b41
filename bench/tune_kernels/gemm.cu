// c = a^T b with a of k x m and b of k x n; the parameters are CLBlast's for xgemm: tiles, vectors,
// strides and shared memory. Sizes are multiples of the tiles.
constexpr int kThreads = MDIMC * NDIMC;
constexpr int kRows = MWG / MDIMC, kColumns = NWG / NDIMC;

template <int kWidth>
struct alignas(kWidth * 4 > 16 ? 16 : kWidth * 4) Vector {
  float values[kWidth];
};

/// A tile of kHigh x kWide, read by all threads of the block in vectors.
template <int kWidth, int kHigh, int kWide>
__device__ void load_tile(float* tile, const float* from, int pitch, int thread) {
  using Piece = Vector<kWidth>;
  for (int i = thread * kWidth; i < kHigh * kWide; i += kThreads * kWidth)
    *reinterpret_cast<Piece*>(tile + i) =
        *reinterpret_cast<const Piece*>(from + (i / kWide) * pitch + i % kWide);
}

/// Index of the i-th of a thread's kOwn values: strided by kAcross, or contiguous.
template <bool kStrided, int kAcross, int kOwn>
__device__ int place_of(int thread, int i) {
  return kStrided ? thread + i * kAcross : thread * kOwn + i;
}
__device__ int row_of(int i) { return place_of<STRM, MDIMC, kRows>(threadIdx.x, i); }
__device__ int column_of(int i) { return place_of<STRN, NDIMC, kColumns>(threadIdx.y, i); }

extern "C" __global__ void gemm(float* c, const float* a, const float* b, int m, int n, int k) {
  const int thread = threadIdx.y * MDIMC + threadIdx.x;
  const int m0 = blockIdx.x * MWG, n0 = blockIdx.y * NWG;
  __shared__ alignas(16) float left[SA ? KWG * MWG : 1], right[SB ? KWG * NWG : 1];
  float sum[kRows][kColumns] = {};
  for (int k0 = 0; k0 < k; k0 += KWG) {
    if (SA) load_tile<VWM, KWG, MWG>(left, a + k0 * m + m0, m, thread);
    if (SB) load_tile<VWN, KWG, NWG>(right, b + k0 * n + n0, n, thread);
    if (SA || SB) __syncthreads();
#pragma unroll KWI
    for (int p = 0; p < KWG; ++p) {
      float x[kRows], y[kColumns];
#pragma unroll
      for (int i = 0; i < kRows; ++i)
        x[i] = SA ? left[p * MWG + row_of(i)] : a[(k0 + p) * m + m0 + row_of(i)];
#pragma unroll
      for (int j = 0; j < kColumns; ++j)
        y[j] = SB ? right[p * NWG + column_of(j)] : b[(k0 + p) * n + n0 + column_of(j)];
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
#pragma unroll
        for (int j = 0; j < kColumns; ++j) sum[i][j] += x[i] * y[j];
      }
    }
    if (SA || SB) __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
#pragma unroll
    for (int j = 0; j < kColumns; ++j) c[(m0 + row_of(i)) * n + n0 + column_of(j)] = sum[i][j];
  }
}
