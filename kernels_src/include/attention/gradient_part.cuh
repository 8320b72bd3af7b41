// Parts of attention's backward kernel for Hopper: a block's shared memory, its part of the work,
// and the work of its first warps: copies, logarithms, sums of the queries' gradient.
#pragma once

#include <kernwright/attention_gradient.cuh>
#include <kernwright/attention_rows.cuh>
#include <kernwright/tma.cuh>

namespace kernwright {

constexpr int kThreads = 384, kReaders = 256;  // two of three warpgroups read the stages
constexpr int kGroupKeys = 64;  // of a warpgroup
constexpr int kKeys = 2 * kGroupKeys;
constexpr int kWarpKeys = 16;
constexpr int kSwizzled = 64;            // elements of a column of 128 bytes
constexpr int kKeyColumn = kKeys * 128;  // bytes
constexpr int kSums = 8192;              // of a tile of queries
constexpr int kStages = 2;               // tiles of queries on their way or in use
constexpr int kChangeSets = 2;
constexpr int kSumSets = 2;  // one of each warpgroup

/// `queries` queries meet the block's keys at a time. Heads have up to `dim` elements, and
/// `value_dim` of values; 128 queries are for heads up to 64, 64 for others: then the gradient of a
/// tile's queries is 64 sums of a warpgroup's thread. `ragged` sequences may have other lengths
/// than arrays.
template <int dim, int value_dim, int queries, bool ragged>
struct Tile {
  static constexpr int kDim = dim, kValueDim = value_dim, kQueries = queries;
  static constexpr int kHalves = queries / 64;
  static constexpr bool kRagged = ragged;
  static constexpr bool kSmall = dim + value_dim <= 192;
  static constexpr int kColumns = (dim + 63) / 64, kValueColumns = (value_dim + 63) / 64;
  static constexpr int kQueryColumn = queries * 128;  // bytes
  static constexpr int kQueryBytes = kColumns * kQueryColumn;
  static constexpr int kGradBytes = kValueColumns * kQueryColumn;
  static constexpr int kChangeBytes = queries / 64 * kKeyColumn;
  static_assert(queries / 64 * kColumns == 2, "kSums of them");
};

/// How the work is shared out: heads of keys are numbered, those of all batches where sequences are
/// not packed; `section` of them are worked on at the same time. Sums are kept of `query_tiles`
/// tiles of each head, of packed sequences of all.
struct BackwardPlan {
  float* sums;         // kSums of each tile
  unsigned* counters;  // blocks begun; of each tile, blocks done with adding
  int heads, key_tiles, section, query_tiles;
  // Factors of batches and heads for a place in the maps: 0 if all share one.
  int q_batch, q_head, grad_batch, grad_head, k_batch, k_head, v_batch, v_head;
};

/// A value known to the compiler as equal in a warp stays out of the warp's registers.
__device__ __forceinline__ int same(int of_warp) { return __shfl_sync(~0u, of_warp, 0); }

/// Whether there are starts of packed sequences.
template <typename Of>
__device__ __forceinline__ bool is_packed(const int* starts) {
  return Of::kRagged && starts != nullptr;
}

struct Maps {
  const TensorMap &q, &grad, &k, &v;
};

template <typename Of>
struct Shared {
  unsigned char *keys, *values, *query_base, *grad_base, *change_base;
  float4* sums;
  float* fact_base;
  Mbarrier *q_full, *grad_full, *facts_full, *q_empty, *grad_empty;  // of each stage
  Mbarrier *kv_full, *tail, *sums_full, *sums_empty;
  unsigned* number;  // of the block

  __device__ explicit Shared(unsigned char* at)
      : keys(at),
        values(keys + Of::kColumns * kKeyColumn),
        query_base(values + Of::kValueColumns * kKeyColumn),
        grad_base(query_base + kStages * Of::kQueryBytes),
        change_base(grad_base + kStages * Of::kGradBytes),
        sums(reinterpret_cast<float4*>(change_base + kChangeSets * Of::kChangeBytes)),
        fact_base(reinterpret_cast<float*>(sums + kSumSets * (kSums / 4))),
        q_full(reinterpret_cast<Mbarrier*>(fact_base + kStages * 2 * Of::kQueries)),
        grad_full(q_full + kStages),
        facts_full(grad_full + kStages),
        q_empty(facts_full + kStages),
        grad_empty(q_empty + kStages),
        kv_full(grad_empty + kStages),
        tail(kv_full + 1),
        sums_full(tail + 1),
        sums_empty(sums_full + kSumSets),
        number(reinterpret_cast<unsigned*>(sums_empty + kSumSets)) {}
  __device__ unsigned char* queries(int stage) const {
    return query_base + stage * Of::kQueryBytes;
  }
  __device__ unsigned char* grads(int stage) const { return grad_base + stage * Of::kGradBytes; }
  __device__ unsigned char* changes(int set) const { return change_base + set * Of::kChangeBytes; }
  /// Logarithms of the queries, then their deltas.
  __device__ float* facts(int stage) const { return fact_base + stage * 2 * Of::kQueries; }

  /// Each lane arrives where ordinary stores write or write anew: racecheck of CUDA 13 takes the
  /// arrival of one for its own words alone.
  __device__ void init() const {
    for (int stage = 0; stage < kStages; ++stage) {
      q_full[stage].init(1);
      grad_full[stage].init(1);
      facts_full[stage].init(32);
      q_empty[stage].init(kReaders);
      grad_empty[stage].init(8);
    }
    kv_full->init(1);
    tail->init(1);
    for (int set = 0; set < kSumSets; ++set) {
      sums_full[set].init(4);
      sums_empty[set].init(1);
    }
    Mbarrier::publish();
  }
};

/// The packed sequence of tile `slot`: each sequence begins a tile of `kEach` tokens behind that of
/// its first token among all. -1 for none, and where starts fall. By all kBlock threads.
template <int kEach, int kBlock>
__device__ __forceinline__ int sequence_of(const int* starts, int batches, int tokens, int slot) {
  int begun = 0;
  bool falls = false;
#pragma unroll 1
  for (int first = 0; first < batches; first += kBlock) {
    const int batch = first + static_cast<int>(threadIdx.x);
    bool begins = false;
    if (batch < batches) {
      const int at = min(max(starts[batch], 0), tokens);
      begins = at / kEach + batch <= slot;
      falls |= min(max(starts[batch + 1], 0), tokens) < at;
    }
    begun += __syncthreads_count(begins);
  }
  return __syncthreads_or(falls) ? -1 : begun - 1;
}

/// Keys of one head, and the tiles of queries that see them, in each of the `group` heads of
/// queries: `tiles` of them from `low` on.
template <typename Of>
struct Part {
  int tile, first_key, kv_head, batch, group, low, tiles;
  long long first_tile;  // the number of the first tile of the batch and its first head
  Sequence sequence;

  __device__ __forceinline__ Part(const AttentionCall& call, const BackwardPlan& plan, int tile_,
                                  int kv_head_, int batch_)
      : tile(tile_),
        first_key(tile_ * kKeys),
        kv_head(kv_head_),
        batch(batch_),
        group(call.heads / call.kv_heads),
        sequence(call, batch_, Of::kRagged) {
    int first, high;
    find_columns<true>(call, sequence, first_key, min(first_key + kKeys, sequence.keys), first,
                       high);
    low = first / Of::kQueries;
    tiles = high > first ? (high + Of::kQueries - 1) / Of::kQueries - low : 0;
    first_tile = tile_of(call, plan, sequence, batch, 0);
  }
  /// See sequence_of().
  __device__ __forceinline__ static long long tile_of(const AttentionCall& call,
                                                      const BackwardPlan& plan,
                                                      const Sequence& sequence, int batch,
                                                      int head) {
    const bool packed = is_packed<Of>(call.q_starts);
    const long long flat = packed ? head : static_cast<long long>(batch) * call.heads + head;
    return flat * plan.query_tiles + (packed ? sequence.q_token / Of::kQueries + batch : 0);
  }
  /// How many blocks add to a tile before this one: those with earlier keys that it sees.
  __device__ __forceinline__ unsigned turn(const AttentionCall& call, int query_tile) const {
    if (call.left < 0) return tile;
    return tile - max(0, query_tile * Of::kQueries + sequence.diagonal - call.left) / kKeys;
  }
  /// work(head, tile) for all tiles, in the order in which all warps go. All heads of a tile follow
  /// each other: so a block with fewer tiles does not wait at a head's end for one with more.
  template <typename Work>
  __device__ __forceinline__ void for_tiles(Work work) const {
#pragma unroll 1
    for (int n = tiles - 1; n >= 0; --n) {
#pragma unroll 1
      for (int i = 0; i < group; ++i) work(kv_head * group + i, low + n);
    }
  }
};

/// Zeros in the place of rows behind the last of a sequence, which are another one's or unwritten.
/// By a warp.
template <int kColumns, int kColumnBytes>
__device__ __forceinline__ void clear_rows(unsigned char* rows, int from, int lane) {
#pragma unroll 1
  for (int column = 0; column < kColumns; ++column) {
    uint4* units = reinterpret_cast<uint4*>(rows + column * kColumnBytes);
#pragma unroll 1
    for (int i = from * 8 + lane; i < kColumnBytes / 16; i += 32) units[i] = make_uint4(0, 0, 0, 0);
  }
}

/// A tile whose columns of 64 elements follow each other.
template <int kColumns, int kColumnBytes>
__device__ __forceinline__ void load_rows(unsigned char* to, const TensorMap& map, int token,
                                          int head, int batch, Mbarrier& full) {
#pragma unroll
  for (int i = 0; i < kColumns; ++i) {
    load_box(to + i * kColumnBytes, map, {i * kSwizzled, token, head, batch}, full);
  }
}

/// A warp loads keys and values, then tiles of queries and gradients.
template <typename Of>
__device__ __forceinline__ void load_part(const Shared<Of>& shared, const Maps& maps,
                                          const AttentionCall& call, const BackwardPlan& plan,
                                          const Part<Of>& part) {
  const int lane = threadIdx.x % 32;
  const Sequence& sequence = part.sequence;
  unsigned tails = 0;
  const auto wait_for_tail = [&] {
    __syncwarp();
    shared.tail->wait(tails);
    tails ^= 1;
  };
  const auto show_cleared = [&](Mbarrier& full) {
    show_to_copies();
    __syncwarp();
    if (lane == 0) full.arrive();
  };
  if (part.tiles == 0) return;
  {
    const int token = static_cast<int>(sequence.k_token) + part.first_key;
    const int batch = static_cast<int>(sequence.k_batch);
    const int last = sequence.keys - part.first_key;
    const bool has_tail =
        Of::kRagged && last < kKeys && sequence.k_token + sequence.keys < call.keys;
    Mbarrier& full = has_tail ? *shared.tail : *shared.kv_full;
    if (lane == 0) {
      full.arrive_expecting((Of::kColumns + Of::kValueColumns) * kKeyColumn);
      load_rows<Of::kColumns, kKeyColumn>(shared.keys, maps.k, token, part.kv_head * plan.k_head,
                                          batch * plan.k_batch, full);
      load_rows<Of::kValueColumns, kKeyColumn>(
          shared.values, maps.v, token, part.kv_head * plan.v_head, batch * plan.v_batch, full);
    }
    if (has_tail) {
      wait_for_tail();
      clear_rows<Of::kColumns, kKeyColumn>(shared.keys, last, lane);
      clear_rows<Of::kValueColumns, kKeyColumn>(shared.values, last, lane);
      show_cleared(*shared.kv_full);
    }
  }
  Ring<kStages> ring;
  part.for_tiles([&](int head, int tile) {
    const int first = tile * Of::kQueries, last = sequence.queries - first;
    const int token = static_cast<int>(sequence.q_token) + first;
    const int batch = static_cast<int>(sequence.q_batch);
    const bool has_tail =
        Of::kRagged && last < Of::kQueries && sequence.q_token + sequence.queries < call.queries;
    unsigned char *const queries = shared.queries(ring.stage), *const grads =
                                                                   shared.grads(ring.stage);
    const auto load_queries = [&](Mbarrier& full) {
      load_rows<Of::kColumns, Of::kQueryColumn>(queries, maps.q, token, head * plan.q_head,
                                                batch * plan.q_batch, full);
    };
    const auto load_grads = [&](Mbarrier& full) {
      load_rows<Of::kValueColumns, Of::kQueryColumn>(grads, maps.grad, token, head * plan.grad_head,
                                                     batch * plan.grad_batch, full);
    };
    Mbarrier &q_full = shared.q_full[ring.stage], &grad_full = shared.grad_full[ring.stage];
    if (lane == 0) {
      shared.q_empty[ring.stage].wait(ring.parity ^ 1);
      if (!has_tail) {
        q_full.arrive_expecting(Of::kQueryBytes);
        load_queries(q_full);
      }
      shared.grad_empty[ring.stage].wait(ring.parity ^ 1);
      if (!has_tail) {
        grad_full.arrive_expecting(Of::kGradBytes);
        load_grads(grad_full);
      } else {
        shared.tail->arrive_expecting(Of::kQueryBytes + Of::kGradBytes);
        load_queries(*shared.tail);
        load_grads(*shared.tail);
      }
    }
    if (has_tail) {
      wait_for_tail();
      clear_rows<Of::kColumns, Of::kQueryColumn>(queries, last, lane);
      clear_rows<Of::kValueColumns, Of::kQueryColumn>(grads, last, lane);
      show_cleared(q_full);
      if (lane == 0) grad_full.arrive();
    }
    ring.advance();
  });
}

/// A warp loads what is known of the queries: rows of none have infinite logarithms.
template <typename Of>
__device__ __forceinline__ void load_facts(const Shared<Of>& shared, const AttentionCall& call,
                                           const Gradients& more, const Part<Of>& part) {
  const int lane = threadIdx.x % 32;
  const Sequence& sequence = part.sequence;
  Ring<kStages> ring;
  part.for_tiles([&](int head, int tile) {
    const long long at = sequence.lse_first + head * call.lse_at.head;
    shared.q_empty[ring.stage].wait(ring.parity ^ 1);
    float* const facts = shared.facts(ring.stage);
#pragma unroll
    for (int i = 0; i < Of::kQueries / 32; ++i) {
      const int row = i * 32 + lane, query = tile * Of::kQueries + row;
      float lse = minus_infinity(), delta = 0;
      if (query < sequence.queries) {
        lse = call.lse[at + query * call.lse_at.token];
        delta = more.delta[at + query * call.lse_at.token];
      }
      facts[row] = lse == minus_infinity() ? -minus_infinity() : to_log2(lse);
      facts[Of::kQueries + row] = delta;
    }
    shared.facts_full[ring.stage].arrive();
    ring.advance();
  });
}

__device__ __forceinline__ unsigned count_of(const unsigned* counter) {
  unsigned count;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(count) : "l"(counter) : "memory");
  return count;
}

/// Global memory that copies have written or will write, whatever the thread itself does to it.
__device__ __forceinline__ void order_copies() {
  asm volatile("fence.proxy.async.global;" ::: "memory");
}

/// A thread adds a warpgroup's tiles of the queries' gradient, every second one, to those in global
/// memory, each in its turn. The first block of a tile writes.
template <typename Of>
__device__ __forceinline__ void add_sums(const Shared<Of>& shared, const AttentionCall& call,
                                         const BackwardPlan& plan, const Part<Of>& part, int set) {
  unsigned parity = 0;
  int step = kSumSets - 1 - set;
  float4* const from = shared.sums + set * (kSums / 4);
  part.for_tiles([&](int head, int tile) {
    if (++step < kSumSets) return;
    step = 0;
    const long long index =
        part.first_tile + static_cast<long long>(head) * plan.query_tiles + tile;
    const unsigned turn = part.turn(call, tile);
    unsigned* const count = plan.counters + 1 + index;
    float* const to = plan.sums + index * kSums;
    shared.sums_full[set].wait(parity);
    parity ^= 1;
    if (turn == 0) {
      asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to),
                   "r"(shared_address(from)), "r"(kSums * 4)
                   : "memory");
    } else {
      while (count_of(count) < turn) {}
      order_copies();
      asm volatile(
          "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(to),
          "r"(shared_address(from)), "r"(kSums * 4)
          : "memory");
    }
    commit_stores();
    wait_for_reads_of_stores<0>();
    shared.sums_empty[set].arrive();
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    order_copies();
    asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(count) : "memory");
  });
}

}  // namespace kernwright
