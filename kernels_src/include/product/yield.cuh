// Yield words: blocks that stay for many tiles take them one by one, until they are told to stop.
#pragma once

#include <kernwright/mbarrier.cuh>

/// The words of this launch: the order to stop, and the next tile. A kernel whose text has this
/// name is compiled once more for launches that may be told to stop; kYields is true there.
#ifndef KERNWRIGHT_YIELD_WORDS
#define KERNWRIGHT_YIELD_WORDS ::kernwright::YieldWords{}
#endif

namespace kernwright {

#ifdef KERNWRIGHT_SLICE_LOOP_
constexpr bool kYields = true;
#else
constexpr bool kYields = false;
#endif

/// The order may be in memory of the host, the counter is in that of the device. Where the counter
/// lies right behind the order, in 8 aligned bytes, one atomic operation takes both.
struct YieldWords {
  const volatile unsigned* order = nullptr;
  unsigned* next = nullptr;
};

constexpr int kNoTile = 0x7fffffff;
constexpr unsigned kAllTaken = 1U << 30;  // what the next tile becomes behind the last one

/// The next tile; kNoTile where none of `tiles` is left, or by order. An order above 1 leaves time
/// for that many tiles less one, counted from the first one of the work.
__device__ __forceinline__ int take_tile(const YieldWords& words, int tiles) {
  using Both = unsigned long long;
  const auto both = reinterpret_cast<Both>(words.order);
  unsigned tile;
  if (words.next == words.order + 1 && both % sizeof(Both) == 0) {
    const Both old = atomicAdd(reinterpret_cast<Both*>(both), Both{1} << 32);
    const unsigned order = static_cast<unsigned>(old);
    tile = static_cast<unsigned>(old >> 32);
    if (order != 0 && tile >= order - 1) {
      atomicAdd(words.next, ~0U);  // whoever takes a tile behind the order gives it back
      return kNoTile;
    }
  } else {
    const unsigned order = *words.order;
    const volatile unsigned* const next = words.next;
    if (order != 0 && *next >= order - 1) return kNoTile;
    tile = atomicAdd(words.next, 1);
  }
  if (tile < static_cast<unsigned>(tiles)) return static_cast<int>(tile);
  atomicMax(words.next, kAllTaken);
  return kNoTile;
}

/// How the producer of a cluster's first block tells all warps of the cluster which tile is next:
/// they stop at the same one. A ticket is written again `slots` tiles later: by then all have read
/// it.
template <int cluster, int slots>
struct YieldTickets {
  struct Slot {
    alignas(16) int tile[4];
    Mbarrier ready;
  };

  /// By one thread, in front of what publishes barriers.
  __device__ __forceinline__ void init() const {
    if constexpr (kYields) {
      for (int i = 0; i < slots; ++i) all()[i].ready.init(1);
    }
  }
  /// By the producer of each block.
  __device__ __forceinline__ int take(const YieldWords& words, int tiles, unsigned rank,
                                      int number) const {
    Slot& slot = all()[number % slots];
    if constexpr (cluster == 1) {
      const int tile = take_tile(words, tiles);
      slot.tile[0] = tile;
      slot.ready.arrive();
      return tile;
    } else {
      slot.ready.arrive_expecting(sizeof(slot.tile));
      if (rank == 0) {
        const unsigned tile = static_cast<unsigned>(take_tile(words, tiles));
        const unsigned four[4] = {tile, tile, tile, tile};
        for (int block = 0; block < cluster; ++block) {
          send_four(address_in_block(shared_address(slot.tile), block), four,
                    address_in_block(shared_address(&slot.ready), block));
        }
      }
      return read(number);
    }
  }
  __device__ __forceinline__ int read(int number) const {
    Slot& slot = all()[number % slots];
    slot.ready.wait(number / slots & 1);
    return slot.tile[0];
  }

 private:
  __device__ __forceinline__ static Slot* all() {
    __shared__ Slot tickets[slots];
    return tickets;
  }
};

}  // namespace kernwright
