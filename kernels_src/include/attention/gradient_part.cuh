// Parts of attention's backward kernels for Hopper: a block's shared memory, the block's part of
// the work, and the producer warps: TMA loads and logarithms. `Of` is a kernel's tile: BackwardTile
// and the kernel's use of shared memory.
#pragma once

#include <kernwright/attention_gradient.cuh>
#include <kernwright/attention_rows.cuh>
#include <kernwright/tma.cuh>

namespace kernwright {

constexpr int kReaders = 256;  // two warpgroups read the stages
constexpr int kWarpKeys = 16;
constexpr int kSwizzled = 64;  // elements of a column of 128 bytes

/// `queries` queries meet the `keys` keys of a block at a time. Heads have up to `dim` elements,
/// and `value_dim` of values. `ragged` sequences may have other lengths than arrays. `stages` tiles
/// of queries are loaded or in use. A cluster of `blocks` with neighbouring keys loads queries
/// together.
template <int dim, int value_dim, int queries, int keys, int blocks, bool ragged, int stages>
struct BackwardTile {
  static constexpr int kDim = dim, kValueDim = value_dim, kQueries = queries;
  static constexpr int kBlockKeys = keys, kBlocks = blocks, kKeys = blocks * keys;
  static constexpr bool kRagged = ragged;
  static constexpr int kStages = stages;
  static constexpr int kColumns = (dim + 63) / 64, kValueColumns = (value_dim + 63) / 64;
  static constexpr int kKeyColumn = keys * 128;  // bytes
  static constexpr int kQueryColumn = queries * 128;
  static constexpr int kQueryBytes = kColumns * kQueryColumn;
  static constexpr int kGradBytes = kValueColumns * kQueryColumn;
  static constexpr int kChangeBytes = queries / 64 * kKeyColumn;
  static constexpr int kAccumulators = kColumns * queries * 64;  // floats of the queries' gradient
};

/// How the work is divided: heads of keys are numbered, over all batches where sequences are not
/// packed; the blocks work on `section` heads at once. Accumulators exist for `query_tiles` tiles
/// of each head; for packed sequences, for the tiles of all sequences.
struct BackwardPlan {
  float* accumulators;  // of each tile, a float for each query and element
  unsigned* counters;   // blocks begun; of each tile, blocks done with adding
  int heads, key_tiles, section, query_tiles;
  // Factors of batches and heads for a place in the maps: 0 if all share one.
  int q_batch, q_head, grad_batch, grad_head, k_batch, k_head, v_batch, v_head;
};

/// A value known to the compiler as equal in a warp stays out of the warp's registers.
__device__ __forceinline__ int same(int value) { return __shfl_sync(~0u, value, 0); }

/// Whether there are starts of packed sequences.
template <typename Config>
__device__ __forceinline__ bool is_packed(const int* starts) {
  return Config::kRagged && starts != nullptr;
}

struct Maps {
  const TensorMap &q, &grad, &k, &v;
};

/// Shared memory, also of what a tile names: kChangeSets, and kSumSlots of
/// kSlotAccumulators floats.
template <typename Config>
struct Shared {
  unsigned char *keys, *values, *query_base, *grad_base, *change_base;
  float4* accumulators;
  float* fact_base;
  Mbarrier *q_full, *grad_full, *facts_full, *q_empty, *grad_empty;  // of each stage
  Mbarrier *kv_full, *tail, *accumulators_full, *accumulators_empty;
  // Barriers of a cluster: the peer block has a stage free; the peer has sent accumulators; this
  // cluster may add.
  Mbarrier *q_shared, *grad_shared, *peer_accumulators, *may_add;
  unsigned* number;  // of the block or cluster

  __device__ explicit Shared(unsigned char* at)
      : keys(at),
        values(keys + Config::kColumns * Config::kKeyColumn),
        query_base(values + Config::kValueColumns * Config::kKeyColumn),
        grad_base(query_base + Config::kStages * Config::kQueryBytes),
        change_base(grad_base + Config::kStages * Config::kGradBytes),
        accumulators(
            reinterpret_cast<float4*>(change_base + Config::kChangeSets * Config::kChangeBytes)),
        fact_base(reinterpret_cast<float*>(accumulators +
                                           Config::kSumSlots * (Config::kSlotAccumulators / 4))),
        q_full(reinterpret_cast<Mbarrier*>(fact_base + Config::kStages * 2 * Config::kQueries)),
        grad_full(q_full + Config::kStages),
        facts_full(grad_full + Config::kStages),
        q_empty(facts_full + Config::kStages),
        grad_empty(q_empty + Config::kStages),
        kv_full(grad_empty + Config::kStages),
        tail(kv_full + 1),
        accumulators_full(tail + 1),
        accumulators_empty(accumulators_full + 2),
        q_shared(accumulators_empty + Config::kSumSlots),
        grad_shared(q_shared + (Config::kBlocks - 1) * Config::kStages),
        peer_accumulators(grad_shared + (Config::kBlocks - 1) * Config::kStages),
        may_add(peer_accumulators + (Config::kBlocks - 1) * Config::kSumSlots),
        number(reinterpret_cast<unsigned*>(may_add + (Config::kBlocks - 1) * 2)) {}
  __device__ unsigned char* queries(int stage) const {
    return query_base + stage * Config::kQueryBytes;
  }
  __device__ unsigned char* grads(int stage) const {
    return grad_base + stage * Config::kGradBytes;
  }
  __device__ unsigned char* changes(int set) const {
    return change_base + set * Config::kChangeBytes;
  }
  /// Logarithms of the queries, then their deltas.
  __device__ float* facts(int stage) const { return fact_base + stage * 2 * Config::kQueries; }

  /// Each lane arrives where ordinary stores write: racecheck of CUDA 13 takes one lane's arrival
  /// as an order for the words of this lane alone.
  __device__ void init() const {
    for (int stage = 0; stage < Config::kStages; ++stage) {
      q_full[stage].init(1);
      grad_full[stage].init(1);
      facts_full[stage].init(32);
      q_empty[stage].init(kReaders);
      grad_empty[stage].init(8);
    }
    kv_full->init(1);
    tail->init(1);
    for (int i = 0; i < 2; ++i) accumulators_full[i].init(4);
    for (int i = 0; i < Config::kSumSlots; ++i)
      accumulators_empty[i].init(Config::kBlocks > 1 ? 4 : 1);
    if constexpr (Config::kBlocks > 1) {
      for (int stage = 0; stage < Config::kStages; ++stage) {
        q_shared[stage].init(1);
        grad_shared[stage].init(1);
      }
      for (int i = 0; i < Config::kSumSlots; ++i) peer_accumulators[i].init(1);
      for (int i = 0; i < 2; ++i) may_add[i].init(1);
    }
    Mbarrier::publish();
  }
};

/// The packed sequence of tile `slot`: each sequence begins a tile of `kEach` tokens behind the
/// tile of its first token in the packed order. -1 for a tile without a sequence, and where starts
/// fall. All kBlock threads call it.
template <int kEach, int kBlock>
__device__ __forceinline__ int find_sequence(const int* starts, int batches, int tokens, int slot) {
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

/// The block's tile of keys, the head of keys among the heads of all batches, the batch. Blocks of
/// the first keys come first: their queries see the most. False where the block has no tile.
template <typename Config, int kBlock>
__device__ __forceinline__ bool place_block(const AttentionCall& call, const BackwardPlan& plan,
                                            unsigned number_, int& tile, int& flat, int& batch) {
  const int number = same(static_cast<int>(number_)), all = plan.section * plan.key_tiles;
  const int section = number / all, inside = number % all;
  const int first = section * plan.section, heads = min(plan.section, plan.heads - first);
  flat = first + inside % heads;
  tile = inside / heads;
  batch = flat / call.kv_heads;
  if (is_packed<Config>(call.k_starts)) {
    batch =
        same(find_sequence<Config::kKeys, kBlock>(call.k_starts, call.batches, call.keys, tile));
    if (batch < 0) return false;
    tile -= same(min(max(call.k_starts[batch], 0), call.keys) / Config::kKeys + batch);
  }
  return true;
}

/// Keys of one head, and the tiles of queries that see keys of the cluster, in each of the `group`
/// heads of queries: `tiles` of them from `low` on.
template <typename Config>
struct Part {
  int tile, first_key, kv_head, batch, group, low, tiles;
  long long first_tile;  // the number of the first tile of the batch and head
  Sequence sequence;

  __device__ __forceinline__ Part(const AttentionCall& call, const BackwardPlan& plan, int tile_,
                                  int kv_head_, int batch_, int rank = 0)
      : tile(tile_),
        first_key(tile_ * Config::kKeys + rank * Config::kBlockKeys),
        kv_head(kv_head_),
        batch(batch_),
        group(call.heads / call.kv_heads),
        sequence(call, batch_, Config::kRagged) {
    int first, high;
    const int begin = tile * Config::kKeys;
    find_columns<true>(call, sequence, begin, min(begin + Config::kKeys, sequence.keys), first,
                       high);
    low = first / Config::kQueries;
    tiles = high > first ? (high + Config::kQueries - 1) / Config::kQueries - low : 0;
    first_tile = first_tile_index(call, plan, sequence, batch, 0);
  }
  /// Whether the sequence has keys of the cluster.
  __device__ __forceinline__ bool has_keys() const { return tile * Config::kKeys < sequence.keys; }
  /// See find_sequence().
  __device__ __forceinline__ static long long first_tile_index(const AttentionCall& call,
                                                               const BackwardPlan& plan,
                                                               const Sequence& sequence, int batch,
                                                               int head) {
    const bool packed = is_packed<Config>(call.q_starts);
    const long long flat = packed ? head : static_cast<long long>(batch) * call.heads + head;
    return flat * plan.query_tiles + (packed ? sequence.q_token / Config::kQueries + batch : 0);
  }
  /// How many blocks add to a tile before this one: blocks with earlier keys that the tile's
  /// queries see.
  __device__ __forceinline__ unsigned turn(const AttentionCall& call, int query_tile) const {
    if (call.left < 0) return tile;
    return tile -
           max(0, query_tile * Config::kQueries + sequence.diagonal - call.left) / Config::kKeys;
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
    for (int i = max(from, 0) * 8 + lane; i < kColumnBytes / 16; i += 32)
      units[i] = make_uint4(0, 0, 0, 0);
  }
}

/// A number as a type, for arguments.
template <int kValue>
struct Count {
  static constexpr int value = kValue;
};

/// A tile whose columns of 64 elements follow each other.
template <int kColumns, int kColumnBytes>
__device__ __forceinline__ void load_rows(unsigned char* to, const TensorMap& map, int token,
                                          int head, int batch, Mbarrier& full) {
#pragma unroll
  for (int i = 0; i < kColumns; ++i) {
    tma_load(to + i * kColumnBytes, map, {i * kSwizzled, token, head, batch}, full);
  }
}

/// Loads a tile for both blocks of a cluster by multicast: each block loads every second column.
/// The peer's stage is free when `ready` ends a phase.
template <int kColumns, int kColumnBytes>
__device__ __forceinline__ void load_shared_rows(unsigned char* to, const TensorMap& map, int token,
                                                 int head, int batch, Mbarrier& full,
                                                 Mbarrier& ready, unsigned parity) {
  const unsigned rank = cluster_rank();
  ready.arrive_at(rank ^ 1);
  ready.wait(parity);
#pragma unroll 1
  for (int i = rank; i < kColumns; i += 2) {
    tma_load_multicast(3, to + i * kColumnBytes, map, {i * kSwizzled, token, head, batch}, full);
  }
}

/// A warp loads keys and values, then tiles of queries and gradients.
template <typename Config>
__device__ __forceinline__ void load_part(const Shared<Config>& shared, const Maps& maps,
                                          const AttentionCall& call, const BackwardPlan& plan,
                                          const Part<Config>& part) {
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
    const bool has_tail = Config::kRagged && last < Config::kBlockKeys &&
                          sequence.k_token + sequence.keys < call.keys;
    Mbarrier& full = has_tail ? *shared.tail : *shared.kv_full;
    if (lane == 0) {
      full.arrive_expecting((Config::kColumns + Config::kValueColumns) * Config::kKeyColumn);
      load_rows<Config::kColumns, Config::kKeyColumn>(
          shared.keys, maps.k, token, part.kv_head * plan.k_head, batch * plan.k_batch, full);
      load_rows<Config::kValueColumns, Config::kKeyColumn>(
          shared.values, maps.v, token, part.kv_head * plan.v_head, batch * plan.v_batch, full);
    }
    if (has_tail) {
      wait_for_tail();
      clear_rows<Config::kColumns, Config::kKeyColumn>(shared.keys, last, lane);
      clear_rows<Config::kValueColumns, Config::kKeyColumn>(shared.values, last, lane);
      show_cleared(*shared.kv_full);
    }
  }
  Ring<Config::kStages> ring;
  unsigned shares = 0;  // parities of stages loaded with the other block
  part.for_tiles([&](int head, int tile) {
    const int first = tile * Config::kQueries, last = sequence.queries - first;
    const int token = static_cast<int>(sequence.q_token) + first;
    const int batch = static_cast<int>(sequence.q_batch);
    const bool has_tail = Config::kRagged && last < Config::kQueries &&
                          sequence.q_token + sequence.queries < call.queries;
    unsigned char *const queries = shared.queries(ring.stage), *const grads =
                                                                   shared.grads(ring.stage);
    const auto load = [&](auto columns, unsigned char* to, const TensorMap& map, int head_in_map,
                          int batch_in_map, Mbarrier& full, Mbarrier* ready) {
      if constexpr (Config::kBlocks > 1) {
        if (!has_tail) {
          load_shared_rows<columns.value, Config::kQueryColumn>(
              to, map, token, head_in_map, batch_in_map, full, ready[ring.stage],
              shares >> ring.stage & 1);
          return;
        }
      }
      load_rows<columns.value, Config::kQueryColumn>(to, map, token, head_in_map, batch_in_map,
                                                     full);
    };
    const auto load_queries = [&](Mbarrier& full) {
      load(Count<Config::kColumns>{}, queries, maps.q, head * plan.q_head, batch * plan.q_batch,
           full, shared.q_shared);
    };
    const auto load_grads = [&](Mbarrier& full) {
      load(Count<Config::kValueColumns>{}, grads, maps.grad, head * plan.grad_head,
           batch * plan.grad_batch, full, shared.grad_shared);
    };
    Mbarrier &q_full = shared.q_full[ring.stage], &grad_full = shared.grad_full[ring.stage];
    if (lane == 0) {
      shared.q_empty[ring.stage].wait(ring.parity ^ 1);
      if (!has_tail) {
        q_full.arrive_expecting(Config::kQueryBytes);
        load_queries(q_full);
      }
      shared.grad_empty[ring.stage].wait(ring.parity ^ 1);
      if (!has_tail) {
        grad_full.arrive_expecting(Config::kGradBytes);
        load_grads(grad_full);
        shares ^= 1u << ring.stage;
      } else {
        shared.tail->arrive_expecting(Config::kQueryBytes + Config::kGradBytes);
        load_queries(*shared.tail);
        load_grads(*shared.tail);
      }
    }
    if (has_tail) {
      wait_for_tail();
      clear_rows<Config::kColumns, Config::kQueryColumn>(queries, last, lane);
      clear_rows<Config::kValueColumns, Config::kQueryColumn>(grads, last, lane);
      show_cleared(q_full);
      if (lane == 0) grad_full.arrive();
    }
    ring.advance();
  });
}

/// A warp loads what is known of the queries: rows of none have infinite logarithms.
template <typename Config>
__device__ __forceinline__ void load_facts(const Shared<Config>& shared, const AttentionCall& call,
                                           const Gradients& more, const Part<Config>& part) {
  const int lane = threadIdx.x % 32;
  const Sequence& sequence = part.sequence;
  Ring<Config::kStages> ring;
  part.for_tiles([&](int head, int tile) {
    const long long at = sequence.lse_first + head * call.lse_at.head;
    shared.q_empty[ring.stage].wait(ring.parity ^ 1);
    float* const facts = shared.facts(ring.stage);
#pragma unroll
    for (int i = 0; i < Config::kQueries / 32; ++i) {
      const int row = i * 32 + lane, query = tile * Config::kQueries + row;
      float lse = minus_infinity(), delta = 0;
      if (query < sequence.queries) {
        lse = call.lse[at + query * call.lse_at.token];
        delta = more.delta[at + query * call.lse_at.token];
      }
      facts[row] = lse == minus_infinity() ? -minus_infinity() : to_log2(lse);
      facts[Config::kQueries + row] = delta;
    }
    shared.facts_full[ring.stage].arrive();
    ring.advance();
  });
}

__device__ __forceinline__ unsigned read_count(const unsigned* counter) {
  unsigned count;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(count) : "l"(counter) : "memory");
  return count;
}

/// Adds to a count with release order: whoever acquires the count sees all earlier writes of the
/// thread.
__device__ __forceinline__ void add_release(unsigned* count) {
  asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(count) : "memory");
}

/// Global memory that copies have written or will write, whatever the thread itself does to it.
__device__ __forceinline__ void order_copies() {
  asm volatile("fence.proxy.async.global;" ::: "memory");
}

/// Queued by a thread: accumulators of a block go to global memory, added where `adds`.
__device__ __forceinline__ void send_accumulators(float* to, const float4* from, int bytes,
                                                  bool adds) {
  if (adds) {
    asm volatile(
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(to),
        "r"(shared_address(from)), "r"(bytes)
        : "memory");
  } else {
    store_bytes(to, from, bytes);
  }
  commit_stores();
}

/// All accumulators sent by the thread are added: blocks behind this one may add their own.
__device__ __forceinline__ void let_next_block_add(unsigned* count) {
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  order_copies();
  add_release(count);
}

/// Until `turn` blocks have added their accumulators.
__device__ __forceinline__ void wait_for_turn(const unsigned* count, unsigned turn) {
  if (turn == 0) return;
  while (read_count(count) < turn) {}
  order_copies();
}

}  // namespace kernwright
