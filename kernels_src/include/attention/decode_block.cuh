// A block of decode attention: a part of a batch, head and context, and the rows of queries.
#pragma once

#include <kernwright/attention_tile.cuh>
#include <kernwright/byte_tiles.cuh>
#include <kernwright/reduce.cuh>
#include <kernwright/split_parts.cuh>

namespace kernwright {

constexpr int kRows = 16;  // queries times heads of one head of keys

/// The host's part of a launch's plan.
struct DecodePlan {
  unsigned* arrived;  ///< a word for each group of splits
  int group;          ///< heads with common keys
  int flat;           ///< blocks are numbered along x alone, else splits, heads and batches
  int each, more;     ///< steps of a split, splits that have one more; 0 steps: the lengths tell
  int received;       ///< bytes of shared memory before a cluster's parts
};

/// A block's part of a batch and head. In the common case it takes no division: divisions would
/// delay the first copies.
struct Work {
  int batch, kv_head, first_row, split;
  unsigned place;  ///< of the group of splits

  __device__ __forceinline__ Work(const AttentionCall& call, const DecodePlan& plan) {
    split = static_cast<int>(blockIdx.x);
    kv_head = static_cast<int>(blockIdx.y);
    batch = static_cast<int>(blockIdx.z);
    first_row = 0;
    place = blockIdx.z * gridDim.y + blockIdx.y;
    if (!plan.flat) return;
    unsigned index = blockIdx.x;
    split = static_cast<int>(index % call.splits);
    index /= call.splits;
    place = index;
    first_row = static_cast<int>(index % call.row_tiles) * kRows;
    index /= call.row_tiles;
    kv_head = static_cast<int>(index % call.kv_heads);
    batch = static_cast<int>(index / call.kv_heads);
  }
};

/// The query of a row; the row's head is the rest.
__device__ __forceinline__ int row_query(const AttentionCall& call, int row, int group) {
  return call.queries == 1 ? row >= group : row / group;
}

__device__ __forceinline__ RowPlace row_place(const AttentionCall& call, const Work& work, int row,
                                              int group) {
  const int query = row_query(call, work.first_row + row, group);
  return {work.kv_head * group + work.first_row + row - query * group, query};
}

/// The block's rows that have a query: the first ones.
__device__ __forceinline__ int valid_rows(const Sequence& sequence, const Work& work, int group) {
  return min(kRows, sequence.queries * group - work.first_row);
}

/// Begin and end of a split's keys: equal shares of the visible keys, in whole steps.
template <int kStep>
struct Share {
  int first, end;
  int visible;  ///< no row sees a token in front of this one

  /// The share of a block where every row sees all keys of the caches.
  __device__ __forceinline__ Share(const AttentionCall& call, const DecodePlan& plan, int split)
      : visible(0) {
    set(0, call.keys, plan.each, plan.more, split);
  }
  __device__ __forceinline__ Share(const AttentionCall& call, const DecodePlan& plan,
                                   const Sequence& sequence, int split, int first_query,
                                   int last_query) {
    visible = sequence.first_key(call, first_query);
    const int low = visible / kStep * kStep;
    const int high = sequence.end_key(call, last_query);
    int each = plan.each, more = plan.more;
    if (each == 0) {
      const int steps = high > low ? (high - low + kStep - 1) / kStep : 0;
      each = steps / call.splits;
      more = steps - each * call.splits;
    }
    set(low, high, each, more, split);
  }

 private:
  __device__ __forceinline__ void set(int low, int high, int each, int more, int split) {
    first = low + (split * each + min(split, more)) * kStep;
    end = min(high, first + (each + (split < more ? 1 : 0)) * kStep);
  }
};

/// How a warp loads kTokens tokens that lie `step` elements apart, kDim elements E each. A smaller
/// form of TokenCopy: the copies of a lane have constant distances.
template <typename E, int kTokens, int kDim>
struct SpacedCopy {
  static constexpr int kEach = 16 / sizeof(E), kChunks = kDim / kEach, kAtOnce = 32 / kChunks;
  static constexpr bool kFits = 32 % kChunks == 0 && kChunks % 8 == 0;

  /// Starts the copies: `there` tokens exist, and zeros stand for the rest of the tile.
  __device__ static __forceinline__ void start(unsigned char* to, const E* from, long long step,
                                               int dim, int there) {
    const int lane = threadIdx.x % 32, row = lane / kChunks, chunk = lane % kChunks;
    const bool inside = chunk * kEach < dim;
    const unsigned target = shared_address(to) + row * kChunks * 16;
    const unsigned place = (chunk ^ row) * 16;
    if (there < kTokens) {
#pragma unroll 1
      for (int i = 0; i < kTokens / kAtOnce; ++i) {
        const int token = i * kAtOnce + row;
        const bool valid = inside && token < there;
        copy_async(target + i * 512 + (place ^ (i * kAtOnce % 8 * 16)),
                   valid ? from + token * step + chunk * kEach : from, valid);
      }
      return;
    }
    const E* at = from + (inside ? row * step + chunk * kEach : 0);
    const long long apart = inside ? kAtOnce * step : 0;
#pragma unroll
    for (int i = 0; i < kTokens / kAtOnce; ++i, at += apart) {
      copy_async(target + i * 512 + (place ^ (i * kAtOnce % 8 * 16)), at, inside);
    }
  }
  /// Prefetches the tokens into L2.
  __device__ static __forceinline__ void fetch(const E* from, long long step, int dim, int there) {
    constexpr int kLineElements = 128 / static_cast<int>(sizeof(E)), kLines = kDim / kLineElements;
#pragma unroll
    for (int i = threadIdx.x % 32; i < kTokens * kLines; i += 32) {
      const int row = i / kLines, column = i % kLines * kLineElements;
      if (row < there && column < dim) {
        asm volatile("prefetch.global.L2 [%0];" ::"l"(from + row * step + column));
      }
    }
  }
};

/// The exponent of the power of two that brings a row's largest finite query, of bits `most`, to
/// float16's upper end.
__device__ __forceinline__ int query_exponent(unsigned most) {
  return min(max(127 + 14 - static_cast<int>(most >> 7), -126), 126);
}

/// Eight queries of each thread at a time; zeros behind the last row and element.
template <typename T, int kDim, int kThreads>
struct QueryPacks {
  static constexpr int kPacks = kRows * kDim / 8, kEach = (kPacks + kThreads - 1) / kThreads;
  Pack<T, 8> packs[kEach];

  __device__ __forceinline__ void get(const AttentionCall& call, const Sequence& sequence,
                                      const Work& work, int group) {
    const T* const q = static_cast<const T*>(call.q) + sequence.q_first;
#pragma unroll
    for (int n = 0; n < kEach; ++n) {
      const int i = threadIdx.x + n * kThreads;
      const int column = i % (kDim / 8) * 8;
      const RowPlace at = row_place(call, work, i / (kDim / 8), group);
      const T* const from = q + at.query * call.q_at.token + at.head * call.q_at.head;
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        const bool valid = i < kPacks && at.query < sequence.queries && column + j < call.dim;
        packs[n].value[j] = valid ? from[column + j] : T{};
      }
    }
  }

  /// Whether rows are multiplied by powers of two: bfloat16 has numbers out of float16's range.
  template <typename E>
  static constexpr bool kScaled = sizeof(E) == 1 && T::kBias == 127;

  /// All threads of the block write the rows' queries as the block's tile, to be read after the
  /// block's next barrier. `most`: kRows words of shared memory, for query_exponent() of each row
  /// if kScaled.
  template <typename E>
  __device__ __forceinline__ void store(unsigned char* tile, unsigned* most) const {
    if constexpr (kScaled<E>) find_largest(most);
    if constexpr (sizeof(E) == 1) {
      store_for_bytes<kScaled<E>>(tile, most);
    } else {
      store_alike(tile);
    }
  }

 private:
  __device__ __forceinline__ void find_largest(unsigned* most) const {
    if (threadIdx.x < kRows) most[threadIdx.x] = 0;
    __syncthreads();
#pragma unroll
    for (int n = 0; n < kEach; ++n) {
      const int i = threadIdx.x + n * kThreads;
      if (kPacks % kThreads != 0 && i >= kPacks) break;
      unsigned largest = 0;
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        const unsigned size = packs[n].value[j].bits & 0x7fffu;
        if (size < T::kOverflow) largest = max(largest, size);
      }
      atomicMax(most + i / (kDim / 8), largest);
    }
    __syncthreads();
  }

  __device__ __forceinline__ void store_alike(unsigned char* tile) const {
#pragma unroll
    for (int n = 0; n < kEach; ++n) {
      const int i = threadIdx.x + n * kThreads;
      if (kPacks % kThreads != 0 && i >= kPacks) break;
      const int place = swizzled<kDim / 8>(i / (kDim / 8), i % (kDim / 8));
      *reinterpret_cast<Pack<T, 8>*>(tile + 16 * place) = packs[n];
    }
  }
  /// Writes the queries as float16, in the order of multiply_key_bytes().
  template <bool kScale>
  __device__ __forceinline__ void store_for_bytes(unsigned char* tile, const unsigned* most) const {
#pragma unroll
    for (int n = 0; n < kEach; ++n) {
      const int i = threadIdx.x + n * kThreads;
      if (kPacks % kThreads != 0 && i >= kPacks) break;
      const float up = kScale ? exact_power2(query_exponent(most[i / (kDim / 8)])) : 1.0f;
      unsigned pairs[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        pairs[j] = MatrixUnit<Float16>::pair(to_compute(packs[n].value[2 * j]) * up,
                                             to_compute(packs[n].value[2 * j + 1]) * up);
      }
      store_query_words<kDim>(tile, i / (kDim / 8), i % (kDim / 8), pairs);
    }
  }
};

/// The rows' queries as left operands: few queries stay in registers, more in shared memory.
template <int kDim>
struct QueryOperands {
  static constexpr bool kKept = kDim <= 128;
  unsigned tile, kept[kKept ? kDim / 16 : 1][4];

  __device__ __forceinline__ void load(const unsigned char* memory) {
    tile = shared_address(memory);
    if constexpr (kKept) {
#pragma unroll
      for (int step = 0; step < kDim / 16; ++step) load_left<kDim>(kept[step], tile, 0, step);
    }
  }
  /// Columns 16 * step..+15.
  __device__ __forceinline__ void get(unsigned (&left)[4], int step) const {
    if constexpr (kKept) {
#pragma unroll
      for (int i = 0; i < 4; ++i) left[i] = kept[step][i];
    } else {
      load_left<kDim>(left, tile, 0, step);
    }
  }
};

}  // namespace kernwright
