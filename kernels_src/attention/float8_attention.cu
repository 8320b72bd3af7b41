// Attention of float8 queries, keys and values on Hopper, by the work of hopper_attention.cu. Units
// for float8 take operands along the inner dimension alone: of values that is the tokens. So a
// kernel turns the values first, tile by tile.
#include <kernwright/attention_group.cuh>

using namespace kernwright;

/// What operands of float8 are multiplied by, of each batch and head; strides in elements.
struct ScalesCall {
  const float *q, *k, *v;  // or null
  long long q_batch, q_head, k_batch, k_head, v_batch, v_head;
  float scores, values;  // of all

  __device__ __forceinline__ void complete(Part& part) const {
    part.score_scale = scores;
    part.value_scale = values;
    if (q != nullptr) part.score_scale *= q[part.batch * q_batch + part.head * q_head];
    if (k != nullptr) part.score_scale *= k[part.batch * k_batch + part.kv_head * k_head];
    if (part.score_scale == 0) part.score_scale = 1e-30f;  // hidden scores stay infinite
    if (v != nullptr) part.value_scale *= v[part.batch * v_batch + part.kv_head * v_head];
  }
};

/// The index of a sequence's first tile among the tiles of one head of values. A sequence has a
/// tile for each whole tile of keys, and one more.
__device__ __forceinline__ int first_tile(const AttentionCall& call, int k_token, int batch,
                                          int keys) {
  return call.k_starts != nullptr ? k_token / keys + batch : batch * (call.keys / keys + 1);
}
__device__ __forceinline__ int head_tiles(const AttentionCall& call, int keys) {
  return first_tile(call, call.keys, call.batches - 1, keys) +
         (call.k_starts != nullptr ? 1 : call.keys / keys + 1);
}

template <typename A, typename B>
struct OperandTraits {
  using Type = Mixed<A, B>;
};
template <typename A>
struct OperandTraits<A, A> {
  using Type = A;
};

/// A core matrix of 8 rows by 16 bytes lies in 128 contiguous bytes. `next` is the distance in
/// bytes to the core matrix of the next 16 bytes of k, `below` the distance to the next 8 rows.
__device__ __forceinline__ unsigned long long plain_descriptor(unsigned address, unsigned next,
                                                               unsigned below) {
  return (address & 0x3ffffu) >> 4 | static_cast<unsigned long long>(next >> 4) << 16 |
         static_cast<unsigned long long>(below >> 4) << 32;
}

/// Converts four floats to float8_e4m3fn, the first in the low byte. Values beyond 448 become 448.
__device__ __forceinline__ unsigned pack_four(float a, float b, float c, float d) {
  unsigned short low, high;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(low) : "f"(b), "f"(a));
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(high) : "f"(d), "f"(c));
  return low | static_cast<unsigned>(high) << 16;
}

/// The weights are float8_e4m3fn, the result is bfloat16. `keeps`: so are accumulators of many
/// tiles.
template <typename Q, typename K, typename V, bool keeps>
struct Form {
  using Out = BFloat16;
  using Scores = typename OperandTraits<Q, K>::Type;
  using Values = typename OperandTraits<Float8E4M3, V>::Type;
  static constexpr int kLift = 5;
  static constexpr bool kKeeps = keeps;

  /// A thread holds keys t % 4 * 2 and t % 4 * 2 + 1 of every eight: columns of an operand in the
  /// order of turn_values().
  template <int kScores>
  __device__ static __forceinline__ void pack(const float (&s)[kScores],
                                              unsigned (&weights)[kScores / 16][4]) {
#pragma unroll
    for (int i = 0; i < kScores / 16; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const float* at = s + 16 * i + j / 2 * 8 + j % 2 * 2;
        weights[i][j] = pack_four(at[0], at[1], at[4], at[5]);
      }
    }
  }
  template <typename Config>
  __device__ static __forceinline__ unsigned long long describe_values(unsigned values) {
    return plain_descriptor(values, 128, 256);
  }
  /// Queued: weights times 32 keys' values.
  template <typename Config>
  __device__ static __forceinline__ void multiply_values(const unsigned (&weights)[4],
                                                         unsigned long long values, int step,
                                                         int adds) {
    RowAccumulatorProducts<Values>::template add<Config::kValueDim, kResult, false>(
        weights, further(values, step * (Config::kValueDim * 32)), adds);
  }
};

/// By a warp, the last values first.
template <typename Config>
__device__ __forceinline__ void load_turned(const Shared<Config>& shared,
                                            const unsigned char* turned,
                                            const AttentionCall& call) {
  Ring<Config::kValueStages> ring;
  const int tiles = head_tiles(call, Config::kKeys);
  load_each_part(shared, [&](const Part& part) {
    const int last = part.keys / Config::kKeys;
    const long long first = static_cast<long long>(part.kv_head) * tiles +
                            first_tile(call, part.k_token, part.batch, Config::kKeys);
#pragma unroll 1
    for (int index = part.steps - 1; index >= 0; --index) {
      if (threadIdx.x % 32 == 0) {
        const int tile = min(part.low / Config::kKeys + index, last);
        Mbarrier& full = shared.v_full[ring.stage];
        shared.v_empty[ring.stage].wait(ring.parity ^ 1);
        full.arrive_expecting(Config::kValueBytes);
        load_bytes(shared.values(ring.stage), turned + (first + tile) * Config::kValueBytes,
                   Config::kValueBytes, full);
      }
      ring.advance();
    }
  });
}

/// An element of 16 keys, in the order of turn_values().
__device__ __forceinline__ uint4 turn_column(const unsigned (&rows)[16], int element) {
  unsigned made[4];
  const unsigned both = element | (element + 4) << 4;
#pragma unroll
  for (int t = 0; t < 4; ++t) {
    const unsigned low = __byte_perm(rows[2 * t], rows[2 * t + 1], both);
    const unsigned high = __byte_perm(rows[2 * t + 8], rows[2 * t + 9], both);
    made[t] = __byte_perm(low, high, 0x5410);
  }
  return make_uint4(made[0], made[1], made[2], made[3]);
}

/// Launched with (tiles of the keys, heads of values, batches) blocks of 128 threads. A tile of
/// `keys` keys becomes pieces of 16 keys of 8 elements: 32 keys of all elements, then the next 32.
/// A piece has, for each element, keys 0 1 8 9 2 3 10 11 4 5 12 13 6 7 14 15. Zeros are behind the
/// last key.
template <int keys, int dim>
__global__ void __launch_bounds__(128)
    turn_values(const __grid_constant__ AttentionCall call, unsigned char* turned) {
  __shared__ alignas(16) uint4 tile[keys * dim / 16];
  const int batch = blockIdx.z, head = blockIdx.y, index = blockIdx.x;
  const Sequence sequence(call, batch);
  if (index > sequence.keys / keys) return;
  const long long place = static_cast<long long>(head) * head_tiles(call, keys) +
                          first_tile(call, static_cast<int>(sequence.k_token), batch, keys) + index;
  const auto* from =
      static_cast<const unsigned char*>(call.v) + sequence.v_first + head * call.v_at.head;
#pragma unroll 2
  for (int i = threadIdx.x; i < keys / 16 * (dim / 4); i += 128) {
    const int column = i % (dim / 4) * 4, half = i / (dim / 4), first = index * keys + half * 16;
    unsigned rows[16];
#pragma unroll
    for (int r = 0; r < 16; ++r) {
      const bool valid = first + r < sequence.keys && column < call.value_dim;
      rows[r] =
          valid ? *reinterpret_cast<const unsigned*>(from + (first + r) * call.v_at.token + column)
                : 0;
    }
    uint4* const at = tile + (half / 2 * (dim * 32) + column / 8 * 256 + half % 2 * 128) / 16;
#pragma unroll
    for (int c = 0; c < 4; ++c) at[column % 8 + c] = turn_column(rows, c);
  }
  show_to_copies();
  __syncthreads();
  if (threadIdx.x == 0) {
    store_bytes(turned + place * (keys * dim), tile, keys * dim);
    commit_stores();
    wait_for_store_reads<0>();
  }
}

/// hopper_attention() for elements of 8 bits: turn_values() has written the values. Parts of more
/// than `kept_tiles` tiles keep accumulators in `kept`: float32 of the queries of each block. A
/// null `kept` stands for memory behind all further shared memory.
template <typename Kind, typename Config, Extras kExtras>
__global__ void __launch_bounds__(Config::kBound, 1)
    float8_attention(const __grid_constant__ TensorMap map_q,
                     const __grid_constant__ TensorMap map_k,
                     const __grid_constant__ TensorMap map_out,
                     const __grid_constant__ AttentionCall call,
                     const __grid_constant__ HopperPlan plan,
                     const __grid_constant__ ScalesCall scales, const unsigned char* turned,
                     float4* kept, int kept_tiles) {
  extern __shared__ __align__(1024) unsigned char storage[];
  const Shared<Config> shared(storage);
  if (threadIdx.x == 0) {
    prefetch(map_q);
    prefetch(map_k);
    prefetch(map_out);
    shared.init();
  }
  __syncthreads();
  if (threadIdx.x < 128) {
    release_registers<Config>();
    const int warp = threadIdx.x / 32;
    if (threadIdx.x == 0) {
      number_parts<Config>(shared, call, plan, [&](Part& part) { scales.complete(part); });
    }
    if (warp == 1) load_queries<Config>(shared, map_q, call, plan);
    if (warp == 2) load_tiles<Config>(shared, map_k, false, call, plan);
    if (warp == 3) load_turned<Config>(shared, turned, call);
  } else {
    take_registers<Config>();
    constexpr int kAccumulators = Config::kRows * Config::kValueDim / 4;
    float4* const accumulators = kept != nullptr
                                     ? kept + static_cast<long long>(blockIdx.x) * kAccumulators
                                     : reinterpret_cast<float4*>(shared.parts + kParts);
    attend<Kind, Config, kExtras>(shared, map_out, call, {accumulators, kept_tiles});
  }
}
