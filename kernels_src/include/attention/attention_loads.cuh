// The copying warps of attention on Hopper: one thread numbers the parts, and a warp each loads
// their queries, keys and values: none waits for the room that another needs. Compute capability
// 9.0 alone.
#pragma once

#include <kernwright/attention_parts.cuh>
#include <kernwright/attention_rows.cuh>
#include <kernwright/tma.cuh>

namespace kernwright {

/// A warp zeroes the rows of values from `from` on: behind the last key lie rows of the next
/// sequence, or unwritten ones.
template <typename Config>
__device__ __forceinline__ void set_values(unsigned char* values, int from, int lane,
                                           unsigned word) {
#pragma unroll 1
  for (int column = 0; column < Config::kValueColumns; ++column) {
    uint4* units = reinterpret_cast<uint4*>(values + column * Config::kKeyColumn);
#pragma unroll 1
    for (int i = from * 8 + lane; i < Config::kKeys * 8; i += 32) {
      units[i] = make_uint4(word, word, word, word);
    }
  }
  show_to_copies();
  __syncwarp();
}

/// A thread numbers the block's parts for all warps, because divisions take long. `complete` adds
/// further fields to a part.
template <typename Config, typename Complete>
__device__ __forceinline__ void number_parts(const Shared<Config>& shared,
                                             const AttentionCall& call, const HopperPlan& plan,
                                             const Complete& complete) {
  Parts<Config> parts{call, plan};
  Ring<kParts> ring;
  int steps = 0;
  unsigned parity = 0;
  for (int count = 0; steps >= 0; ++count) {
    // What a block takes too early, another one without work cannot take.
    if (Config::kStarts && plan.next != nullptr && count > 0) {
      shared.begun->wait(parity);
      parity ^= 1;
    }
    Part part = parts.next();
    if (part.steps > 0) complete(part);
    shared.part_empty[ring.stage].wait(ring.parity ^ 1);
    shared.parts[ring.stage] = part;
    shared.part_full[ring.stage].arrive();
    ring.advance();
    steps = part.steps;
  }
}

/// A warp takes the block's parts, and loads something of each.
template <typename Config, typename Load>
__device__ __forceinline__ void load_each_part(const Shared<Config>& shared, const Load& load) {
  Ring<kParts> ring;
  while (true) {
    shared.part_full[ring.stage].wait(ring.parity);
    const Part part = shared.parts[ring.stage];
    if (part.steps < 0) break;
    give_back(shared.part_empty[ring.stage], threadIdx.x % 32);
    ring.advance();
    load(part);
  }
}

/// By a warp.
template <typename Config>
__device__ __forceinline__ void load_queries(const Shared<Config>& shared, const TensorMap& map,
                                             const AttentionCall& call, const HopperPlan& plan) {
  Ring<Config::kPlaces> ring;
  load_each_part(shared, [&](const Part& part) {
    const int batch = is_packed<Config>(call.q_starts) ? 0 : part.batch * plan.q_batch;
    const int groups = is_elected() ? Config::kGroups : 0;
#pragma unroll 1
    for (int group = 0; group < groups; ++group) {
      const int slot = group * Config::kPlaces + ring.stage;
      shared.q_empty[slot].wait(ring.parity ^ 1);
      shared.q_full[slot].arrive_expecting(Config::kQueryBytes);
#pragma unroll
      for (int i = 0; i < Config::kColumns; ++i) {
        tma_load(shared.queries(slot) + i * (kGroupRows * 128), map,
                 {i * Config::kPerColumn, part.q_token + part.row + group * kGroupRows,
                  part.head * plan.q_head, batch},
                 shared.q_full[slot]);
      }
    }
    ring.advance();
  });
}

/// By a warp: tiles of keys or of values, the last ones first. One text for both, as kernels are
/// compiled in proportion to theirs.
template <typename Config>
__device__ __forceinline__ void load_tiles(const Shared<Config>& shared, const TensorMap& map,
                                           bool values, const AttentionCall& call,
                                           const HopperPlan& plan) {
  const int lane = threadIdx.x % 32;
  const int stages = values ? Config::kValueStages : Config::kStages;
  const int bytes = values ? Config::kValueBytes : Config::kKeyBytes;
  Mbarrier* const full = values ? shared.v_full : shared.k_full;
  Mbarrier* const empty = values ? shared.v_empty : shared.k_empty;
  unsigned char* const tiles = values ? shared.value_base : shared.key_base;
  int stage = 0;
  unsigned parity = 0, tails = 0;
  load_each_part(shared, [&](const Part& part) {
    const int batch =
        is_packed<Config>(call.k_starts) ? 0 : part.batch * (values ? plan.v_batch : plan.k_batch);
    if (Config::kStarts && !values && lane == 0) shared.begun->arrive();
    const int head = part.kv_head * (values ? plan.v_head : plan.k_head);
    // The rows of the last tile behind the sequence, as far as the array goes; zeros follow.
    const int last = part.keys - part.low - (part.steps - 1) * Config::kKeys;
    bool has_tail =
        Config::kStarts && values && last < Config::kKeys && part.k_token + part.keys < call.keys;
#pragma unroll 1
    for (int index = part.steps - 1; index >= 0; --index) {
      unsigned char* const tile = tiles + stage * bytes;
      if (is_elected()) {
        empty[stage].wait(parity ^ 1);
        Mbarrier& told = has_tail ? *shared.tail : full[stage];
        told.arrive_expecting(bytes);
#pragma unroll 1
        for (int at = 0; at < bytes; at += Config::kKeyColumn) {
          tma_load(tile + at, map,
                   {at / Config::kKeyColumn * Config::kPerColumn,
                    part.k_token + part.low + index * Config::kKeys, head, batch},
                   told);
        }
      }
      if (has_tail) {
        __syncwarp();
        shared.tail->wait(tails);
        tails ^= 1;
        set_values<Config>(tile, max(last, 0), lane, 0);
        if (lane == 0) full[stage].arrive();
        has_tail = false;
      }
      if (++stage == stages) stage = 0, parity ^= 1;
    }
  });
}

/// A warp's loads from the pages of a part's sequence. A lane has the page of one TMA load of a
/// tile.
struct PageLoads {
  static constexpr unsigned kNaNs = 0x7fff7fffu;  // of both types of 16 bits
  const AttentionCall& call;
  const Part& part;
  const int* table;
  int rows, visible;          ///< tokens of a load; no query of the part sees one in front of this
  int page = -1, offset = 0;  ///< of the lane's load; below 0: zeros are loaded
  bool wrong = false;         ///< the page index lies outside the cache

  __device__ __forceinline__ PageLoads(const AttentionCall& call_, const Part& part_, int rows_)
      : call(call_),
        part(part_),
        table(call_.table + part_.batch * call_.table_row),
        rows(rows_),
        visible(part_.first_key(call_, part_.row)) {}

  /// Looks up the page of the TMA load that begins at a token.
  __device__ __forceinline__ void find(int token) {
    page = -1;
    wrong = false;
    if (token >= part.keys || token + rows <= visible) return;
    const int place = quotient(token, call.page_size);
    offset = token - place * call.page_size;
    page = place < call.pages ? table[place] : -1;
    wrong = page < 0 || page >= call.page_limit;
    if (wrong) page = -1;
  }
};

/// By a warp: as load_tiles(), from pages. Values of a page that is none become NaN.
template <typename Config>
__device__ __forceinline__ void load_pages(const Shared<Config>& shared, const TensorMap& map,
                                           bool values, const AttentionCall& call,
                                           const HopperPlan& plan) {
  const int lane = threadIdx.x % 32;
  const int stages = values ? Config::kValueStages : Config::kStages;
  const int bytes = values ? Config::kValueBytes : Config::kKeyBytes;
  Mbarrier* const full = values ? shared.v_full : shared.k_full;
  Mbarrier* const empty = values ? shared.v_empty : shared.k_empty;
  unsigned char* const tiles = values ? shared.value_base : shared.key_base;
  const int token_loads = quotient(Config::kKeys, plan.page_rows);
  const int loads = token_loads * (values ? Config::kValueColumns : Config::kColumns);
  const int page_step = values ? plan.v_batch : plan.k_batch;
  int stage = 0;
  unsigned parity = 0, tails = 0;
  load_each_part(shared, [&](const Part& part) {
    if (Config::kStarts && !values && lane == 0) shared.begun->arrive();
    const int head = part.kv_head * (values ? plan.v_head : plan.k_head);
    const int last = part.keys - part.low - (part.steps - 1) * Config::kKeys;
    bool has_tail = values && last < Config::kKeys;
    PageLoads pages(call, part, plan.page_rows);
#pragma unroll 1
    for (int index = part.steps - 1; index >= 0; --index) {
      unsigned char* const tile = tiles + stage * bytes;
      if (lane < token_loads) pages.find(part.low + index * Config::kKeys + lane * plan.page_rows);
      if (lane == 0) empty[stage].wait(parity ^ 1);
      const bool is_broken = __any_sync(~0u, values && pages.wrong);
      const bool changes = has_tail || is_broken;
      Mbarrier& told = changes ? *shared.tail : full[stage];
      if (lane == 0) told.arrive_expecting(bytes);
      __syncwarp();
#pragma unroll 1
      for (int begin = 0; begin < loads; begin += 32) {
        const int column = quotient(begin + lane, token_loads);
        const int load = begin + lane - column * token_loads;
        const int page = __shfl_sync(~0u, pages.page, load);
        const int offset = __shfl_sync(~0u, pages.offset, load);
        if (begin + lane < loads) {
          tma_load(tile + column * Config::kKeyColumn + load * plan.page_rows * 128, map,
                   {column * Config::kPerColumn, offset, head, page < 0 ? -1 : page * page_step},
                   told);
        }
      }
      if (changes) {
        __syncwarp();
        shared.tail->wait(tails);
        tails ^= 1;
        set_values<Config>(tile, is_broken ? 0 : max(last, 0), lane,
                           is_broken ? PageLoads::kNaNs : 0);
        if (lane == 0) full[stage].arrive();
        has_tail = false;
      }
      if (++stage == stages) stage = 0, parity ^= 1;
    }
  });
}

}  // namespace kernwright
