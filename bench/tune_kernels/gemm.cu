// c = a^T b, where a is k x m and b is k x n; its parameters are those of CLBlast's xgemm that
// choose tiles, vectors, strides and shared memory. Sizes are multiples of the tiles.
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

extern "C" __global__ void gemm(float* c, const float* a, const float* b, int m, int n, int k) {
  const int thread = threadIdx.y * MDIMC + threadIdx.x;
  const int m0 = blockIdx.x * MWG, n0 = blockIdx.y * NWG;
#if SA
  __shared__ alignas(16) float left[KWG * MWG];
#endif
#if SB
  __shared__ alignas(16) float right[KWG * NWG];
#endif
  float sum[kRows][kColumns] = {};
  for (int k0 = 0; k0 < k; k0 += KWG) {
#if SA
    load_tile<VWM, KWG, MWG>(left, a + k0 * m + m0, m, thread);
#endif
#if SB
    load_tile<VWN, KWG, NWG>(right, b + k0 * n + n0, n, thread);
#endif
#if SA || SB
    __syncthreads();
#endif
#pragma unroll KWI
    for (int p = 0; p < KWG; ++p) {
      float x[kRows], y[kColumns];
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        const int row = STRM ? threadIdx.x + i * MDIMC : threadIdx.x * kRows + i;
#if SA
        x[i] = left[p * MWG + row];
#else
        x[i] = a[(k0 + p) * m + m0 + row];
#endif
      }
#pragma unroll
      for (int j = 0; j < kColumns; ++j) {
        const int column = STRN ? threadIdx.y + j * NDIMC : threadIdx.y * kColumns + j;
#if SB
        y[j] = right[p * NWG + column];
#else
        y[j] = b[(k0 + p) * n + n0 + column];
#endif
      }
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
#pragma unroll
        for (int j = 0; j < kColumns; ++j) sum[i][j] += x[i] * y[j];
      }
    }
#if SA || SB
    __syncthreads();
#endif
  }
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const int row = STRM ? threadIdx.x + i * MDIMC : threadIdx.x * kRows + i;
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      const int column = STRN ? threadIdx.y + j * NDIMC : threadIdx.y * kColumns + j;
      c[(m0 + row) * n + n0 + column] = sum[i][j];
    }
  }
}
