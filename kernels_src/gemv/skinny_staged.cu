// Products with some rows: weights and x pass through shared memory, several stages ahead.
#include <kernwright/skinny.cuh>
#include <kernwright/skinny_weights.cuh>

using namespace kernwright;

// A block has 16 * RowTiles rows of the weights for each of its warps, and all rows of x. A stage
// is 128 bytes of each row of the weights and an equal part of x. As in skinny.cu a lane uses 16
// bytes of either as parts of fragments. Odd rows are kept with swapped halves (or neighbours):
// eight lanes read at once, without bank conflicts. A copy has `kCopied` bytes: rows of 16-bit
// weights and of x begin at multiples of them.

template <typename T, typename Weights, int Warps, int RowTiles, int ColTiles, int kCopied>
struct Stage {
  static constexpr int kValues = Weights::kValues;
  static constexpr unsigned kParts = 16 / kCopied;  ///< copies of a unit of 16 bytes
  static constexpr unsigned kThreads = Warps * 32, kRows = Warps * RowTiles * 16;
  static constexpr unsigned kColumns = ColTiles * 8, kDepth = 8 * kValues;  ///< along k
  static constexpr unsigned kUnits = kValues;  ///< units of 16 bytes in a row of x
  static constexpr unsigned kSwap = kValues == 8 ? 4 : 1;
  static constexpr unsigned kBytes = kRows * 128 + kColumns * kUnits * 16;

  __device__ __forceinline__ static unsigned weights_at(unsigned row, unsigned unit) {
    return row * 128 + (unit ^ (row % 2 * 4)) * 16;
  }
  __device__ __forceinline__ static unsigned x_at(unsigned row, unsigned unit) {
    return kRows * 128 + (row * kUnits + (unit ^ (row % 2 * kSwap))) * 16;
  }

  /// Rows beyond the last are the last; k beyond the end is zero.
  __device__ __forceinline__ static void fill(const SkinnyProblem& p, const Weights& weights,
                                              UInt64 batch, unsigned first, unsigned from,
                                              unsigned to) {
    static_assert(kRows * 8 % kThreads == 0, "each thread copies as much");
    constexpr unsigned kRowCopies = 8 * kParts, kXCopies = kUnits * kParts;
#pragma unroll
    for (unsigned i = 0; i < kRows * kRowCopies / kThreads; ++i) {
      const unsigned at = i * kThreads + threadIdx.x, row = at / kRowCopies;
      const unsigned copy = at % kRowCopies, k = from + copy * (kValues / kParts);
      const auto line = weights.row(batch, min(first + row, p.n - 1));
      copy_later<kCopied>(to + weights_at(row, copy / kParts) + copy % kParts * kCopied,
                          Weights::at(line, k < p.k ? k : 0), k < p.k);
    }
    const T* const x = static_cast<const T*>(p.x) + static_cast<Int64>(batch) * p.x_batch;
#pragma unroll
    for (unsigned i = 0; i < kColumns * kXCopies; i += kThreads) {
      const unsigned at = i + threadIdx.x, row = at / kXCopies, copy = at % kXCopies;
      if (kColumns * kXCopies % kThreads != 0 && at >= kColumns * kXCopies) break;
      const unsigned k = from + copy * (8 / kParts);
      const T* const line = x + min(row, p.m - 1) * p.x_row;
      copy_later<kCopied>(to + x_at(row, copy / kParts) + copy % kParts * kCopied,
                          line + (k < p.k ? k : 0), k < p.k);
    }
  }

  __device__ __forceinline__ static void multiply(const unsigned char* stage,
                                                  float (&accumulators)[RowTiles][ColTiles][4]) {
    const unsigned lane = threadIdx.x % 32, group = lane / 4;
    const unsigned first = threadIdx.x / 32 * (RowTiles * 16) + group;
#pragma unroll
    for (unsigned step = 0; step < 2; ++step) {
      const unsigned unit = step * 4 + lane % 4;
      unsigned upper[RowTiles][kValues / 2], lower[RowTiles][kValues / 2];
#pragma unroll
      for (int r = 0; r < RowTiles; ++r) {
        Weights::decode(read(stage + weights_at(first + r * 16, unit)), upper[r]);
        Weights::decode(read(stage + weights_at(first + r * 16 + 8, unit)), lower[r]);
      }
#pragma unroll
      for (int c = 0; c < ColTiles; ++c)
#pragma unroll
        for (unsigned i = 0; i < kValues / 8; ++i) {
          const Words x = read(stage + x_at(c * 8 + group, unit * (kValues / 8) + i));
#pragma unroll
          for (int r = 0; r < RowTiles; ++r)
#pragma unroll
            for (int j = 0; j < 4; j += 2) {
              const int k = 4 * i + j;
              multiply_tile(T(), accumulators[r][c], upper[r][k], lower[r][k], upper[r][k + 1],
                            lower[r][k + 1], x.word[j], x.word[j + 1]);
            }
        }
    }
  }

 private:
  __device__ __forceinline__ static Words read(const unsigned char* from) {
    return *reinterpret_cast<const Words*>(from);
  }
};

/// Weights and x begin at multiples of `kCopied` bytes, and so do the ends of their rows. The
/// splits are one cluster if `Clustered`: then accumulators are added here, in the order of the
/// blocks.
template <typename T, typename Weights, typename Act, int Warps, int RowTiles, int ColTiles,
          int Stages, bool Clustered, int kCopied>
__global__ void __launch_bounds__(Warps * 32) skinny_staged(SkinnyProblem p, Weights weights) {
  using Parts = Stage<T, Weights, Warps, RowTiles, ColTiles, kCopied>;
  constexpr unsigned kPitch = Parts::kRows + 4;
  extern __shared__ __align__(16) unsigned char memory[];
  const unsigned first = blockIdx.x * Parts::kRows;
  const unsigned chunks = (p.k + Parts::kDepth - 1) / Parts::kDepth;
  const unsigned each = (chunks + p.splits - 1) / p.splits;
  const unsigned begin = min(blockIdx.y * each, chunks), end = min(begin + each, chunks);
  for (unsigned i = threadIdx.x; i < Parts::kRows * p.ahead; i += Warps * 32) {
    const unsigned k = (begin + i % p.ahead) * Parts::kDepth, row = first + i / p.ahead;
    if (k < p.k && row < p.n) Weights::fetch(weights.row(blockIdx.z, row), k);
  }
  pdl_launch_then_wait();
  for (UInt64 batch = blockIdx.z; batch < p.batches; batch += gridDim.z) {
    float accumulators[RowTiles][ColTiles][4] = {};
    const auto fill = [&](unsigned chunk) {
      if (chunk < end) {
        const unsigned at = chunk % Stages * Parts::kBytes;
        Parts::fill(p, weights, batch, first, chunk * Parts::kDepth, shared_address(memory) + at);
      }
      end_copies();
    };
    for (unsigned i = 0; i < Stages - 1; ++i) fill(begin + i);
    for (unsigned chunk = begin; chunk < end; ++chunk) {
      wait_for_copies<Stages - 2>();
      __syncthreads();
      fill(chunk + Stages - 1);
      Parts::multiply(memory + chunk % Stages * Parts::kBytes, accumulators);
    }
    wait_for_copies<0>();
    __syncthreads();
    float* const tile = reinterpret_cast<float*>(memory);
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int r = 0; r < RowTiles; ++r)
#pragma unroll
      for (int c = 0; c < ColTiles; ++c)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const unsigned column = c * 8 + lane % 4 * 2 + i % 2;
          const unsigned row = (warp * RowTiles + r) * 16 + i / 2 * 8 + lane / 4;
          tile[column * kPitch + row] = accumulators[r][c][i];
        }
    __syncthreads();
    if constexpr (Clustered) cluster_sync();
    const unsigned stride = Clustered ? p.splits * Warps * 32 : Warps * 32;
    unsigned i = Clustered ? blockIdx.y * Warps * 32 + threadIdx.x : threadIdx.x;
    for (; i < Parts::kColumns * Parts::kRows; i += stride) {
      const unsigned m = i / Parts::kRows, row = i % Parts::kRows, n = first + row;
      if (m >= p.m) break;
      const float* const local = tile + m * kPitch + row;
      if constexpr (Clustered) {
        float sum = 0;
        for (unsigned rank = 0; rank < p.splits; ++rank) sum += read_block(local, rank);
        if (n < p.n) finish_sum<T, Act>(p, batch, m, n, sum);
      } else if (n < p.n) {
        store_sum<T, Act>(p, batch, m, n, *local);
      }
    }
    if constexpr (Clustered) leave_cluster(p.splits);
    __syncthreads();
  }
}
