// One warp's part of attention on matrix units: 16 rows of queries times a tile of keys, the
// running softmax of the rows, weights times values.
#pragma once

#include <kernwright/attention.cuh>
#include <kernwright/tensor_core.cuh>

namespace kernwright {

/// The place of a chunk of 16 bytes in a tile with `kChunks` in a row.
template <int kChunks>
__device__ __forceinline__ int chunk_place(int row, int chunk) {
  if constexpr (kChunks % 4 == 0) return swizzled<kChunks>(row, chunk);
  return row * kChunks + chunk;
}

/// How a warp brings kTokens (8, 16 or 32) tokens to shared memory: kDim elements E each. A lane
/// has one copy of 16 bytes after the other, up to kUnrolled of them without a loop.
template <typename E, int kTokens, int kDim, bool kAsync,
          int kUnrolled = kTokens* kDim* static_cast<int>(sizeof(E)) / 512>
struct TokenCopy {
  static constexpr int kEach = 16 / sizeof(E);
  static constexpr int kChunks = kDim / kEach;
  static constexpr int kBytes = kTokens * kDim * sizeof(E);

  /// `offset` is that of the token lane % kTokens; without one the token is zeros.
  __device__ static __forceinline__ void start(unsigned char* to, const E* from, long long offset,
                                               int dim) {
    const int lane = threadIdx.x % 32;
#pragma unroll kUnrolled
    for (int i = 0; i < kTokens * kChunks / 32; ++i) {
      const int row = (lane + 32 * i) / kChunks, chunk = (lane + 32 * i) % kChunks;
      const long long at = __shfl_sync(~0u, offset, row);
      unsigned char* const target = to + 16 * chunk_place<kChunks>(row, chunk);
      if constexpr (kAsync) {
        const bool valid = at != kNoRow && chunk * kEach < dim;
        copy_async(shared_address(target), valid ? from + at + chunk * kEach : from, valid);
      } else {
        Pack<E, kEach> pack;
#pragma unroll
        for (int j = 0; j < kEach; ++j) {
          const bool valid = at != kNoRow && chunk * kEach + j < dim;
          pack.value[j] = valid ? from[at + chunk * kEach + j] : E{};
        }
        *reinterpret_cast<Pack<E, kEach>*>(target) = pack;
      }
    }
  }
};

/// Loads tokens of 8-bit elements E of a cache as elements T: the conversion is exact. kPacks:
/// tokens begin at multiples of 16 bytes.
template <typename T, typename E, int kTokens, int kDim, bool kPacks>
struct WidenedCopy {
  static constexpr int kChunks = kDim / 8;

  __device__ static __forceinline__ void start(unsigned char* to, const E* from, long long offset,
                                               int dim) {
    const int lane = threadIdx.x % 32;
#pragma unroll 4
    for (int i = 0; i < kTokens * kChunks / 32; ++i) {
      const int row = (lane + 32 * i) / kChunks, chunk = (lane + 32 * i) % kChunks;
      const long long at = __shfl_sync(~0u, offset, row);
      Pack<E, 8> pack{};
      if constexpr (kPacks) {
        if (at != kNoRow && chunk * 8 < dim) {
          pack = *reinterpret_cast<const Pack<E, 8>*>(from + at + chunk * 8);
        }
      } else {
#pragma unroll
        for (int j = 0; j < 8; ++j) {
          if (at != kNoRow && chunk * 8 + j < dim) pack.value[j] = from[at + chunk * 8 + j];
        }
      }
      Pack<T, 8> wide;
#pragma unroll
      for (int j = 0; j < 8; ++j) wide.value[j] = from_compute<T>(to_compute(pack.value[j]));
      *reinterpret_cast<Pack<T, 8>*>(to + 16 * chunk_place<kChunks>(row, chunk)) = wide;
    }
  }
};

/// How a warp brings tokens of a cache's elements E to a tile of elements T.
template <typename T, typename E, int kTokens, int kDim, bool kPacks>
struct CacheCopy : WidenedCopy<T, E, kTokens, kDim, kPacks> {};
template <typename T, int kTokens, int kDim, bool kPacks>
struct CacheCopy<T, T, kTokens, kDim, kPacks> : TokenCopy<T, kTokens, kDim, kPacks> {};

/// 16 rows of a result and of their softmax; a lane has two rows, l / 4 and l / 4 + 8. `peak`: the
/// largest score; `total`: the lane's own share of the sum of 2^(score - peak).
template <int kValueDim>
struct RunningRows {
  float out[kValueDim / 8][4];
  float peak[2], total[2];

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int i = 0; i < kValueDim / 8; ++i) {
      for (int j = 0; j < 4; ++j) out[i][j] = 0;
    }
    peak[0] = peak[1] = minus_infinity();
    total[0] = total[1] = 0;
  }

  /// Takes in the scores of kTiles * 8 keys, turns them into weights, and rescales the
  /// accumulators.
  template <int kTiles>
  __device__ __forceinline__ void take(float (&s)[kTiles][4]) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float most = peak[r];
#pragma unroll
      for (int i = 0; i < kTiles; ++i) most = fmaxf(most, fmaxf(s[i][2 * r], s[i][2 * r + 1]));
      most = fmaxf(most, __shfl_xor_sync(~0u, most, 1));
      most = fmaxf(most, __shfl_xor_sync(~0u, most, 2));
      const float base = most == minus_infinity() ? 0.0f : most;
      const float factor = power2(peak[r] - base);
      peak[r] = most;
      float sum = 0;
#pragma unroll
      for (int i = 0; i < kTiles; ++i) {
        s[i][2 * r] = power2(s[i][2 * r] - base);
        s[i][2 * r + 1] = power2(s[i][2 * r + 1] - base);
        sum += s[i][2 * r] + s[i][2 * r + 1];
      }
      total[r] = total[r] * factor + sum;
#pragma unroll
      for (int i = 0; i < kValueDim / 8; ++i) {
        out[i][2 * r] *= factor;
        out[i][2 * r + 1] *= factor;
      }
    }
  }

  /// The sum of the row of the lane's own rows r.
  __device__ __forceinline__ float whole_total(int r) const {
    float sum = total[r];
    sum += __shfl_xor_sync(~0u, sum, 1);
    return sum + __shfl_xor_sync(~0u, sum, 2);
  }
};

/// Calls work(score, row 0 or 1, key) for a lane's scores in tiles of eight keys from `first`.
template <int kTiles, typename Work>
__device__ __forceinline__ void for_scores(float (&s)[kTiles][4], int first, Work work) {
  const int column = first + threadIdx.x % 4 * 2;
#pragma unroll
  for (int i = 0; i < kTiles; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) work(s[i][j], j / 2, column + 8 * i + j % 2);
  }
}

/// Scales of a tile's tokens, one for each token and head of keys; a lane has every 32nd.
template <int kTokens>
struct TokenScales {
  static constexpr int kEach = kTokens / 32;
  float value[kEach];

  /// Loads the scales of tokens from `first` on, and 0 for tokens outside of `begin` to `end`.
  /// `scales` points at the batch and head.
  __device__ __forceinline__ void load(const AttentionCall& call, const float* scales,
                                       const int* table, int first, int begin, int end) {
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int token = first + 32 * i + static_cast<int>(threadIdx.x) % 32;
      long long offset = kNoRow;
      if (token >= begin && token < end) offset = token_offset(call, table, call.scales_at, token);
      value[i] = offset == kNoRow ? 0.0f : scales[offset];
    }
  }
  /// Multiplies a lane's scores or weights of the tokens by their scales and by `factor`.
  template <int kTiles>
  __device__ __forceinline__ void multiply(float (&s)[kTiles][4], float factor) const {
    const int column = threadIdx.x % 4 * 2;
#pragma unroll
    for (int i = 0; i < kTiles; ++i) {
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const float scale = factor * __shfl_sync(~0u, value[i / 4], i % 4 * 8 + column + j);
        s[i][j] *= scale;
        s[i][2 + j] *= scale;
      }
    }
  }
};

/// Adds the mask to scores in units of log2; keys behind the row's last are not looked up.
template <typename T, int kTiles>
__device__ __forceinline__ void mask_scores(float (&s)[kTiles][4], const AttentionCall& call,
                                            const ScoreRow (&rows)[2], int first) {
  const auto place = [&](int r, int key) { return rows[r].mask_first + key * call.mask_key; };
  const auto seen = [&](int r, int key) { return key >= rows[r].low && key < rows[r].high; };
  if (call.mask_kind == kBoolMask) {
    const auto* const mask = static_cast<const unsigned char*>(call.mask);
    for_scores(s, first, [&](float& score, int r, int key) {
      if (seen(r, key) && mask[place(r, key)] == 0) score = minus_infinity();
    });
  } else if (call.mask_kind == kProgramMask) {
    const T* const mask = static_cast<const T*>(call.mask);
    for_scores(s, first, [&](float& score, int r, int key) {
      if (seen(r, key)) score += to_log2(to_compute(mask[place(r, key)]));
    });
  } else if (call.mask_kind == kFloatMask) {
    const float* const mask = static_cast<const float*>(call.mask);
    for_scores(s, first, [&](float& score, int r, int key) {
      if (seen(r, key)) score += to_log2(mask[place(r, key)]);
    });
  }
}

/// Scores in units of log2 from products of queries and keys. Without kExtras `scale` has log2(e)
/// in it. `edge`: rows do not see all of these keys.
template <typename T, bool kExtras, int kTiles>
__device__ __forceinline__ void finish_scores(float (&s)[kTiles][4], const AttentionCall& call,
                                              const ScoreRow (&rows)[2], int first, float scale,
                                              bool edge) {
  if (kExtras && call.soft_cap > 0) {
    const float inner = scale / call.soft_cap, outer = call.soft_cap * kLog2E;
    for_scores(s, first,
               [&](float& score, int, int) { score = quick_tanh(score * inner) * outer; });
  } else {
    const float factor = kExtras ? scale * kLog2E : scale;
    for_scores(s, first, [&](float& score, int, int) { score *= factor; });
  }
  if constexpr (kExtras) {
    if (call.slopes != nullptr) {
      for_scores(s, first, [&](float& score, int r, int key) {
        score -= rows[r].slope * fabsf(static_cast<float>(rows[r].position - key));
      });
    }
    mask_scores<T>(s, call, rows, first);
  }
  if (!edge) return;
  for_scores(s, first, [&](float& score, int r, int key) {
    if (key < rows[r].low || key >= rows[r].high) score = minus_infinity();
  });
}

/// The weights of 16 tokens as a left operand.
template <typename T>
__device__ __forceinline__ void pair_weights(unsigned (&left)[4], const float (&a)[4],
                                             const float (&b)[4]) {
  left[0] = MatrixUnit<T>::pair(a[0], a[1]);
  left[1] = MatrixUnit<T>::pair(a[2], a[3]);
  left[2] = MatrixUnit<T>::pair(b[0], b[1]);
  left[3] = MatrixUnit<T>::pair(b[2], b[3]);
}

/// out += weights * values of each row tile; the values' tile holds kTiles * 8 tokens.
template <typename T, int kRowTiles, int kValueDim, int kTiles>
__device__ __forceinline__ void add_values(RunningRows<kValueDim> (&running)[kRowTiles],
                                           const float (&weights)[kRowTiles][kTiles][4],
                                           unsigned values) {
  using Unit = MatrixUnit<T>;
#pragma unroll
  for (int step = 0; step < kTiles / 2; ++step) {
    unsigned left[kRowTiles][4];
#pragma unroll
    for (int m = 0; m < kRowTiles; ++m) {
      pair_weights<T>(left[m], weights[m][2 * step], weights[m][2 * step + 1]);
    }
#pragma unroll
    for (int i = 0; i < kValueDim / 16; ++i) {
      unsigned right[4];
      load_right_transposed<kValueDim>(right, values, step, 16 * i);
#pragma unroll
      for (int m = 0; m < kRowTiles; ++m) {
        Unit::multiply(running[m].out[2 * i], left[m], right[0], right[1]);
        Unit::multiply(running[m].out[2 * i + 1], left[m], right[2], right[3]);
      }
    }
  }
}

}  // namespace kernwright
