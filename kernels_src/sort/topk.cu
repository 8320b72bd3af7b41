// The first k elements of rows in sorted order. For small k a block bounds the result by the first
// elements of its threads, and keeps the elements within the bound. For larger k a block selects
// the first of 4096 elements by digits of 11 bits. The candidates of a row's blocks are joined by
// one of these two ways.
#include <kernwright/order.cuh>
#include <kernwright/ranks.cuh>
#include <kernwright/reduce.cuh>

using namespace kernwright;

constexpr int kThreads = 256;
constexpr int kItems = 16;
constexpr int kTile = kThreads * kItems;
constexpr int kBins = 2048;
constexpr int kMost = 1024;  // the largest k

struct Selection {
  unsigned count[kBins];
  unsigned bin, taken, in_bin;  // the bin in which the last one lies, how many are below and in it
  unsigned found;
};

/// Finds the bin of element number `wanted` (from 1) in the order of the bins.
template <int Threads>
__device__ __forceinline__ void find_bin(Selection& shared, unsigned wanted) {
  constexpr int kEach = kBins / Threads;
  unsigned counts[kEach], sum = 0, total;
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    counts[i] = shared.count[threadIdx.x * kEach + i];
    sum += counts[i];
  }
  unsigned before = block_sum_before<Threads>(sum, total);
  if (before < wanted && wanted <= before + sum) {
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      if (before < wanted && wanted <= before + counts[i]) {
        shared.bin = threadIdx.x * kEach + i;
        shared.taken = before;
        shared.in_bin = counts[i];
      }
      before += counts[i];
    }
  }
  __syncthreads();
}

/// Bits `shift` to `shift + 10` of the key, or of the index where shift is below 0: then up from
/// `shift + 44` of it.
template <typename Bits>
__device__ __forceinline__ unsigned pick_bin(Bits key, UInt32 index, int shift) {
  if (shift >= 0) return static_cast<unsigned>(key >> shift) & (kBins - 1);
  return index >> (shift + 44) & (kBins - 1);
}

/// Marks the k first of the elements in `live`, a bit for each item: by key, then by index of
/// `index_bits` bits. The result is each thread's bits.
template <int Threads, int Items, typename Bits>
__device__ __forceinline__ unsigned select_first(Selection& shared, const Bits (&key)[Items],
                                                 const UInt32 (&index)[Items], unsigned live,
                                                 unsigned k, int index_bits) {
  unsigned chosen = 0;
  constexpr int kBits = 8 * static_cast<int>(sizeof(Bits));
  int shift = kBits > 11 ? kBits - 11 : 0;
  for (;;) {
    for (int i = threadIdx.x; i < kBins; i += Threads) shared.count[i] = 0;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < Items; ++i) {
      if (live >> i & 1) atomicAdd(&shared.count[pick_bin(key[i], index[i], shift)], 1u);
    }
    __syncthreads();
    find_bin<Threads>(shared, k);
    const unsigned bin = shared.bin;
    k -= shared.taken;
    const bool all = shared.in_bin == k;
#pragma unroll
    for (int i = 0; i < Items; ++i) {
      const unsigned number = pick_bin(key[i], index[i], shift);
      if (!(live >> i & 1)) continue;
      if (number < bin || (all && number == bin)) chosen |= 1u << i;
      if (number != bin) live &= ~(1u << i);
    }
    __syncthreads();
    if (all) return chosen;
    // The lowest digit of the key may repeat bits of the one before. No two indices are equal, so
    // that this ends with the lowest digit of them.
    if (shift > 0) {
      shift = shift > 11 ? shift - 11 : 0;
    } else {
      shift = shift == 0 ? (index_bits - 1) / 11 * 11 - 44 : shift - 11;
    }
  }
}

/// Block `tile` of a row (of `tiles`) takes elements tile * kTile ... of the row's `count`
/// candidates: the row itself where `candidates` is null, else indices in the row. The block writes
/// the first `keep` elements (all elements of a short last block), in no order, to `found`,
/// `found_count` for a row; where `tiles` is 1, in order and with values. `keep` is at most kMost.
template <typename Bits>
__global__ void topk_tiles(const Bits* __restrict__ x, const UInt32* __restrict__ candidates,
                           UInt32* __restrict__ found, Bits* __restrict__ values,
                           Int64* __restrict__ indices, Int64 n, Int64 count, Int64 found_count,
                           int tiles, int keep, int segment, int index_bits, Order order) {
  using Entries = EntryTraits<Bits>;
  using Entry = typename Entries::Type;
  __shared__ Selection shared;
  __shared__ Entry entries[kMost];
  const Int64 row = blockIdx.x / tiles;
  const int tile = static_cast<int>(blockIdx.x - row * tiles);
  const Int64 begin = static_cast<Int64>(tile) * kTile;
  const Bits* const from = x + row * n;
  Bits key[kItems];
  UInt32 index[kItems];
  unsigned live = 0;
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    const Int64 at = begin + i * kThreads + threadIdx.x;
    key[i] = 0;
    index[i] = 0;
    if (at >= count) continue;
    live |= 1u << i;
    index[i] = candidates != nullptr ? candidates[row * count + at] : static_cast<UInt32>(at);
  }
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    if (live >> i & 1) key[i] = order_key(from[index[i]], order);
  }
  const Int64 left = count - begin < kTile ? count - begin : kTile;
  const unsigned here = static_cast<unsigned>(left < keep ? left : keep);
  unsigned chosen = live;
  if (here < left) chosen = select_first<kThreads>(shared, key, index, live, here, index_bits);
  if (threadIdx.x == 0) shared.found = 0;
  for (int i = threadIdx.x; i < segment; i += kThreads) {
    entries[i] = Entries::make(static_cast<Bits>(~Bits(0)), ~0u);
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    if (!(chosen >> i & 1)) continue;
    const unsigned slot = atomicAdd(&shared.found, 1u);
    if (tiles > 1) {
      found[row * found_count + static_cast<Int64>(tile) * keep + slot] = index[i];
    } else {
      entries[slot] = Entries::make(key[i], index[i]);
    }
  }
  if (tiles > 1) return;
  sort_segments<kThreads>(entries, segment, segment);
  for (int i = threadIdx.x; i < keep; i += kThreads) {
    const UInt32 at = Entries::index(entries[i]);
    values[row * keep + i] = from[at];
    indices[row * keep + i] = at;
  }
}

// ---- small k

constexpr int kFirstThreads = 512;
/// More candidates than this are cut down before further elements are read.
constexpr int kFull = 512;
/// More candidates than this are reduced before the pairwise comparison.
constexpr int kCompared = 256;
/// Threads that compare one candidate with all further candidates.
constexpr int kTogether = 8;

__device__ __forceinline__ UInt64 ordering_key(UInt64 entry) { return entry >> 32; }
__device__ __forceinline__ UInt64 ordering_key(const WideEntry& entry) { return entry.key; }

/// Up to 32 bits of a key, the highest ones: in no other order than the keys.
template <typename Bits>
struct Coarse {
  static constexpr int kBits = sizeof(Bits) < 4 ? 8 * static_cast<int>(sizeof(Bits)) : 32;
  static constexpr bool kWhole = sizeof(Bits) <= 4;
  static constexpr unsigned kSign = 1u << (kBits - 1);
  static constexpr unsigned kAll = kSign | (kSign - 1);
  __device__ static unsigned apply(UInt64 key) {
    return static_cast<unsigned>(kWhole ? key : key >> 32);
  }
};

/// Keys in few instructions, which reject most elements. The keys are exact except for NaN and -0.
/// The quick key of -0 is next to the key of 0, with no key between: it is above the bound only
/// where 0 is the bound, and then a later zero is not needed.
template <typename Bits>
struct QuickOrder {
  using Key = Coarse<Bits>;
  unsigned turned, always, flip;  ///< bits that negative numbers turn, that all of them turn
  unsigned last;                  ///< above it are negative NaN

  __device__ __forceinline__ explicit QuickOrder(const Order& order) {
    const bool floating = order.nan != 0;
    turned = floating ? Key::kAll : 0;
    always = floating ? Key::kSign : Key::apply(order.sign);
    flip = Key::apply(order.flip) & Key::kAll;
    last = floating ? Key::apply(order.nan - 1) | Key::kSign : Key::kAll;
    if (floating && !Key::kWhole) --last;
  }
  /// True for elements whose exact key is at most `bound`, and for a few more.
  __device__ __forceinline__ bool may_count(Bits bits, unsigned bound) const {
    const unsigned raw = Key::apply(bits);
    const int sign = static_cast<int>(raw << (32 - Key::kBits)) >> 31;
    return raw > last || (raw ^ ((sign & turned) | always) ^ flip) <= bound;
  }
};

/// Loaded elements. Elements of less than 4 bytes stay in words until they are read: compilers
/// would unpack them, and wait for them, at the load.
template <typename Bits, int N, bool InWords = sizeof(Bits) < 4 && N * sizeof(Bits) >= 4>
struct LoadedPack {
  Pack<Bits, N> pack;
  __device__ __forceinline__ Bits operator[](int j) const { return pack.value[j]; }
};
template <typename Bits, int N>
struct LoadedPack<Bits, N, true> {
  static constexpr int kInWord = 4 / sizeof(Bits);
  Pack<UInt32, N / kInWord> pack;
  __device__ __forceinline__ Bits operator[](int j) const {
    const UInt32 word = pack.value[j / kInWord];
    return static_cast<Bits>(word >> (j % kInWord * 8 * static_cast<int>(sizeof(Bits))));
  }
};

/// A block's findings in chunks of kChunk elements.
template <typename Bits, int kChunk>
struct Candidates {
  using Entry = typename EntryTraits<Bits>::Type;
  static constexpr int kRoom = kFull + kChunk;
  static constexpr int kEach = (kRoom + kFirstThreads - 1) / kFirstThreads;
  Entry entries[kRoom];
  Selection selection;  // `found` counts the entries
  unsigned bound;

  __device__ __forceinline__ unsigned count() const { return selection.found; }
  /// Any thread may call it; the result is the index of the entry.
  __device__ __forceinline__ unsigned add(const Entry& entry) {
    const unsigned slot = atomicAdd(&selection.found, 1u);
    entries[slot] = entry;
    return slot;
  }
};

/// A number that `k` of the threads' numbers do not exceed, and few more. If there are not as many,
/// it is the largest one.
template <int kBits>
__device__ __forceinline__ unsigned bin_bound(unsigned least, int k) {
  unsigned below = 0, bound = ~0u;
#pragma unroll 1
  for (int bit = kBits - 1; bit >= 0; --bit) {
    const unsigned test = below | ((1u << bit) - 1);
    const int count = __syncthreads_count(least <= test);
    if (count < k) {
      below |= 1u << bit;
      continue;
    }
    bound = test;
    if (count <= k + k / 4) break;
  }
  return bound;
}

/// Leaves the k first of the candidates, also where many keys are equal.
template <typename Bits, int kChunk>
__device__ __noinline__ void cut_exactly(Candidates<Bits, kChunk>& shared, unsigned k,
                                         int index_bits) {
  using Entries = EntryTraits<Bits>;
  constexpr int kEach = Candidates<Bits, kChunk>::kEach;
  Bits key[kEach];
  UInt32 index[kEach];
  unsigned live = 0;
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const unsigned slot = i * kFirstThreads + threadIdx.x;
    key[i] = 0;
    index[i] = 0;
    if (slot >= shared.count()) continue;
    live |= 1u << i;
    key[i] = static_cast<Bits>(ordering_key(shared.entries[slot]));
    index[i] = Entries::index(shared.entries[slot]);
  }
  const unsigned chosen =
      select_first<kFirstThreads>(shared.selection, key, index, live, k, index_bits);
  if (threadIdx.x == 0) shared.selection.found = shared.bound = 0;
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    if (!(chosen >> i & 1)) continue;
    shared.add(Entries::make(key[i], index[i]));
    atomicMax(&shared.bound, Coarse<Bits>::apply(key[i]));
  }
  __syncthreads();
}

/// Leaves k of the candidates or a few more. The result bounds what may still be among the first.
/// Every thread calls it, behind a barrier.
template <typename Bits, int kChunk>
__device__ __forceinline__ unsigned cut(Candidates<Bits, kChunk>& shared, unsigned k,
                                        int index_bits) {
  using Entry = typename EntryTraits<Bits>::Type;
  constexpr int kEach = Candidates<Bits, kChunk>::kEach;
  Entry held[kEach];
  unsigned least = ~0u;
  const unsigned count = shared.count();
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const unsigned slot = i * kFirstThreads + threadIdx.x;
    if (slot >= count) break;
    held[i] = shared.entries[slot];
    const unsigned key = Coarse<Bits>::apply(ordering_key(held[i]));
    least = key < least ? key : least;
  }
  unsigned bound = bin_bound<Coarse<Bits>::kBits>(least, static_cast<int>(k));
  if (threadIdx.x == 0) shared.selection.found = 0;
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    if (i * kFirstThreads + threadIdx.x >= count) break;
    if (Coarse<Bits>::apply(ordering_key(held[i])) <= bound) shared.add(held[i]);
  }
  __syncthreads();
  const unsigned left = shared.count();
  __syncthreads();  // the next candidate may come
  if (left > kCompared && left > k) {
    cut_exactly(shared, k, index_bits);
    bound = shared.bound;
  }
  return bound;
}

/// Calls put(place, entry) for the k first candidates. Every thread calls it.
template <typename Bits, int kChunk, typename Put>
__device__ __forceinline__ void put_first(const Candidates<Bits, kChunk>& shared, unsigned k,
                                          const Put& put) {
  const unsigned count = shared.count();
  const unsigned part = threadIdx.x % kTogether;
  for (unsigned base = 0; base < count; base += kFirstThreads / kTogether) {
    const unsigned place = base + threadIdx.x / kTogether;
    const auto entry = shared.entries[place < count ? place : 0];
    unsigned before = 0;
#pragma unroll 4
    for (unsigned other = part; other < count; other += kTogether) {
      before += shared.entries[other] < entry;
    }
#pragma unroll
    for (int mask = 1; mask < kTogether; mask *= 2) before += __shfl_xor_sync(~0u, before, mask);
    if (place < count && part == 0 && before < k) put(before, entry);
  }
}

/// Results of a row.
template <typename Bits>
struct PutResults {
  const Bits* from;
  Bits* values;
  Int64* indices;
  __device__ void operator()(unsigned place, const typename EntryTraits<Bits>::Type& entry) const {
    const UInt32 at = EntryTraits<Bits>::index(entry);
    values[place] = from[at];
    indices[place] = at;
  }
};
template <typename Entry>
struct PutEntries {
  Entry* to;
  __device__ void operator()(unsigned place, const Entry& entry) const { to[place] = entry; }
};

/// Finds what may be among the first k of elements [begin, end) of a row, in packs of kPack, of
/// which `end - begin` is a multiple. While a thread works on kPacks packs, the next are on their
/// way.
template <int kPack, int kPacks, typename Bits, int kChunk>
__device__ __forceinline__ void find_first(Candidates<Bits, kChunk>& shared, const Bits* from,
                                           Int64 begin, Int64 end, int k, int index_bits,
                                           const Order& order) {
  using Key = Coarse<Bits>;
  using Entries = EntryTraits<Bits>;
  using Raw = LoadedPack<Bits, kPack>;
  const QuickOrder<Bits> quick(order);
  const auto place = [&](Int64 chunk, int i) {
    return chunk + (i * kFirstThreads + static_cast<int>(threadIdx.x)) * kPack;
  };
  Raw next[kPacks];
  const auto load = [&](Int64 chunk) {
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      next[i] = Raw();  // no earlier elements are kept
      if (place(chunk, i) < end) next[i] = *reinterpret_cast<const Raw*>(from + place(chunk, i));
    }
  };
  load(begin);
  Bits key[kPacks][kPack];
  unsigned least = ~0u;
#pragma unroll
  for (int i = 0; i < kPacks; ++i) {
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      key[i][j] = order_key(next[i][j], order);
      const unsigned coarse = Key::apply(key[i][j]);
      if (place(begin, i) < end && coarse < least) least = coarse;
    }
  }
  load(begin + kChunk);
  unsigned bound = bin_bound<Key::kBits>(least, k);
  bool full = false;
#pragma unroll
  for (int i = 0; i < kPacks; ++i) {
    if (place(begin, i) >= end) continue;
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      if (Key::apply(key[i][j]) > bound) continue;
      const auto at = static_cast<UInt32>(place(begin, i) + j);
      full |= shared.add(Entries::make(key[i][j], at)) >= kFull;
    }
  }
#pragma unroll 1
  for (Int64 chunk = begin + kChunk;; chunk += kChunk) {
    if (__syncthreads_or(full)) {
      bound = cut(shared, k, index_bits);
      load(chunk);  // again, so that the cut may have their registers
    }
    if (chunk >= end) break;
    // The first of equal elements wins, so elements equal to the bound are rejected from here on.
    const unsigned limit = Key::kWhole && bound > 0 ? bound - 1 : bound;
    Raw raw[kPacks];
    unsigned may = 0;
#pragma unroll
    for (int i = 0; i < kPacks; ++i) raw[i] = next[i];
    load(chunk + kChunk);
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      if (place(chunk, i) >= end) continue;
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        if (quick.may_count(raw[i][j], limit)) may |= 1u << (i * kPack + j);
      }
    }
    full = false;
    if (may == 0) continue;
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        if (!(may >> (i * kPack + j) & 1)) continue;
        const Bits exact = order_key(raw[i][j], order);
        if (Key::apply(exact) > limit) continue;
        const auto at = static_cast<UInt32>(place(chunk, i) + j);
        full |= shared.add(Entries::make(exact, at)) >= kFull;
      }
    }
  }
  if (shared.count() > kCompared && shared.count() > k) cut(shared, k, index_bits);
}

/// A block for each of `segments` segments of each row of n elements; the last block of a row joins
/// the candidates. Rows and segments begin at multiples of kPack elements. `finds`: k entries for
/// each block; `arrived`: a word for each row, zero before and after the launch. Both are unused
/// where `segments` is 1. `k` is at most half of the threads, segments * k at most the room of the
/// candidates.
template <typename Bits, int kPack, int kPacks>
__global__ void __launch_bounds__(kFirstThreads, 2)
    topk_segments(const Bits* __restrict__ x, typename EntryTraits<Bits>::Type* finds,
                  Bits* __restrict__ values, Int64* __restrict__ indices, unsigned* arrived,
                  Int64 n, Int64 segment, int segments, int k, int index_bits, const Order order) {
  using Entries = EntryTraits<Bits>;
  using Entry = typename Entries::Type;
  __shared__ Candidates<Bits, kFirstThreads * kPack * kPacks> shared;
  const Int64 row = blockIdx.x / segments;
  const Int64 begin = (blockIdx.x - row * segments) * segment;
  const Int64 end = begin + segment < n ? begin + segment : n;
  const PutResults<Bits> results = {x + row * n, values + row * k, indices + row * k};
  if (threadIdx.x == 0) shared.selection.found = 0;
  find_first<kPack, kPacks>(shared, results.from, begin, end, k, index_bits, order);
  if (segments == 1) return put_first(shared, k, results);
  Entry* const block_finds = finds + static_cast<Int64>(blockIdx.x) * k;
  for (int i = threadIdx.x + static_cast<int>(shared.count()); i < k; i += kFirstThreads) {
    block_finds[i] = Entries::make(static_cast<Bits>(~Bits(0)), ~0u);  // behind all elements
  }
  put_first(shared, k, PutEntries<Entry>{block_finds});
  if (!is_last_block(arrived + row, segments)) return;
  const int count = segments * k;
  for (int i = threadIdx.x; i < count; i += kFirstThreads) {
    shared.entries[i] = finds[row * count + i];
  }
  if (threadIdx.x == 0) shared.selection.found = count;
  __syncthreads();
  if (count > kCompared) cut(shared, k, index_bits);
  put_first(shared, k, results);
}
