// The copying warps of attention on Hopper: one thread numbers the parts, one warp has their
// queries, keys and values loaded. Compute capability 9.0 alone.
#pragma once

#include <kernwright/attention_parts.cuh>
#include <kernwright/attention_rows.cuh>
#include <kernwright/tma.cuh>

namespace kernwright {

struct Maps {
  const TensorMap &q, &k, &v, &out;
};

/// Zeros in the place of values behind the last key, which are another sequence's or unwritten. By
/// a warp.
template <typename Of>
__device__ __forceinline__ void clear_values(unsigned char* values, int from, int lane) {
#pragma unroll 1
  for (int column = 0; column < Of::kValueColumns; ++column) {
    uint4* units = reinterpret_cast<uint4*>(values + column * Of::kKeyColumn);
#pragma unroll 1
    for (int i = from * 8 + lane; i < Of::kKeys * 8; i += 32) units[i] = make_uint4(0, 0, 0, 0);
  }
  show_to_copies();
  __syncwarp();
}

/// A thread numbers the block's parts for the others: divisions take long.
template <typename Of>
__device__ __forceinline__ void number_parts(const Shared<Of>& shared, const AttentionCall& call,
                                             const HopperPlan& plan) {
  Parts<Of> parts{call, plan};
  Ring<kParts> ring;
  int steps = 0;
  while (steps >= 0) {
    const Part part = parts.next();
    shared.part_empty[ring.stage].wait(ring.parity ^ 1);
    shared.parts[ring.stage] = part;
    shared.part_full[ring.stage].arrive();
    ring.advance();
    steps = part.steps;
  }
}

/// A warp loads queries, keys and values, the last keys first.
template <typename Of>
__device__ __forceinline__ void load_parts(const Shared<Of>& shared, const Maps& maps,
                                           const AttentionCall& call, const HopperPlan& plan) {
  const int lane = threadIdx.x;
  Ring<Of::kStages> k_ring, v_ring;
  Ring<Of::kPlaces> q_ring;
  Ring<kParts> ring;
  unsigned tails = 0;
  const bool packed_queries = call.q_starts != nullptr, packed_keys = call.k_starts != nullptr;
  while (true) {
    shared.part_full[ring.stage].wait(ring.parity);
    const Part part = shared.parts[ring.stage];
    if (part.steps < 0) break;
    give_back(shared.part_empty[ring.stage], lane);
    ring.advance();
    const int first = part.low + (part.steps - 1) * Of::kKeys, last_token = part.k_token + first;
    const int k_batch = packed_keys ? 0 : part.batch;
    const auto load_queries = [&] {
      const int head = part.head * plan.q_head;
      const int batch = packed_queries ? 0 : part.batch * plan.q_batch;
#pragma unroll 1
      for (int group = 0; group < Of::kGroups; ++group) {
        const int slot = group * Of::kPlaces + q_ring.stage;
        shared.q_empty[slot].wait(q_ring.parity ^ 1);
        shared.q_full[slot].arrive_expecting(Of::kQueryBytes);
#pragma unroll
        for (int i = 0; i < Of::kColumns; ++i) {
          load_box(shared.queries(slot) + i * (kGroupRows * 128), maps.q,
                   {i * kSwizzled, part.q_token + part.row + group * kGroupRows, head, batch},
                   shared.q_full[slot]);
        }
      }
    };
    const auto load_keys = [&](int back) {
      Mbarrier& full = shared.k_full[k_ring.stage];
      shared.k_empty[k_ring.stage].wait(k_ring.parity ^ 1);
      full.arrive_expecting(Of::kKeyBytes);
#pragma unroll
      for (int i = 0; i < Of::kColumns; ++i) {
        load_box(shared.keys(k_ring.stage) + i * Of::kKeyColumn, maps.k,
                 {i * kSwizzled, last_token - back * Of::kKeys, part.kv_head * plan.k_head,
                  k_batch * plan.k_batch},
                 full);
      }
    };
    const auto load_values = [&](int back, Mbarrier& full) {
      shared.v_empty[v_ring.stage].wait(v_ring.parity ^ 1);
      full.arrive_expecting(Of::kValueBytes);
#pragma unroll
      for (int i = 0; i < Of::kValueColumns; ++i) {
        load_box(shared.values(v_ring.stage) + i * Of::kKeyColumn, maps.v,
                 {i * kSwizzled, last_token - back * Of::kKeys, part.kv_head * plan.v_head,
                  k_batch * plan.v_batch},
                 full);
      }
    };
    // The rows of the last tile behind the sequence, as far as the array goes; zeros follow.
    const int last = part.keys - first;
    const bool has_tail = last < Of::kKeys && part.k_token + part.keys < call.keys;
#pragma unroll 1
    for (int i = 0; i <= part.steps; ++i) {
      if (i < part.steps) {
        if (lane == 0) load_keys(i);
        k_ring.advance();
      }
      if (i == 0) {
        if (lane == 0) load_queries();
        continue;
      }
      Mbarrier& full = shared.v_full[v_ring.stage];
      if (i > 1 || !has_tail) {
        if (lane == 0) load_values(i - 1, full);
      } else {
        if (lane == 0) load_values(0, *shared.tail);
        __syncwarp();
        shared.tail->wait(tails);
        tails ^= 1;
        clear_values<Of>(shared.values(v_ring.stage), max(last, 0), lane);
        if (lane == 0) full.arrive();
      }
      v_ring.advance();
    }
    q_ring.advance();
  }
}

}  // namespace kernwright
