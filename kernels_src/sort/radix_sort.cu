// Sorts rows of any length, several blocks a row. One launch counts the digits of 8 bits of all
// keys; then one launch a digit moves the elements: a block has a tile, and reads the destinations
// from earlier tiles. (A. Adinets, D. Merrill, "Onesweep: A Faster Least Significant Digit Radix
// Sort for GPUs", 2022.)
#include <kernwright/order.cuh>
#include <kernwright/ranks.cuh>
#include <kernwright/reduce.cuh>

using namespace kernwright;

/// Keys of elements, as order_key() makes them. What `Floats` says the host knows.
template <typename Bits, bool Floats>
struct Keys {
  static constexpr Bits kTop = static_cast<Bits>(Bits(1) << (8 * sizeof(Bits) - 1));
  Bits nan, flip;
  int shift;

  __device__ Keys(const Order& order, int digit)
      : nan(static_cast<Bits>(order.nan)),
        flip(static_cast<Bits>(Floats ? order.flip : order.flip ^ order.sign)),
        shift(8 * digit) {}

  __device__ __forceinline__ Bits key(Bits bits) const {
    if constexpr (!Floats) return static_cast<Bits>(bits ^ flip);
    const Bits size = magnitude(bits);
    Bits made = static_cast<Bits>(size | kTop);
    if (bits > kTop) made = static_cast<Bits>(~bits);
    if (size >= nan) made = static_cast<Bits>(~Bits(0));
    return static_cast<Bits>(made ^ flip);
  }
  __device__ __forceinline__ unsigned digit(Bits bits) const {
    return static_cast<unsigned>(key(bits) >> shift) & (kDigits - 1);
  }
};

/// Counts of elements of a row: 32 bits where two of them can be spared.
template <bool Wide>
struct CountTraits {
  using Type = UInt32;
};
template <>
struct CountTraits<true> {
  using Type = UInt64;
};

// ---- the digits of all keys

constexpr int kCountItems = 8;

/// counts[row][digit's place][digit] (zeros before) becomes how many elements of the row have a
/// lower digit there. `idle[row]` gets a bit for each place where all digits are alike, but never
/// the last one. `arrived[row]` is 0 before. The board of the first move is cleared beside it. A
/// block takes `chunk` elements of a row.
template <typename Bits, bool Floats, bool Wide>
__global__ void __launch_bounds__(kDigits)
    count_digits(const Bits* __restrict__ x, typename CountTraits<Wide>::Type* __restrict__ counts,
                 unsigned* __restrict__ arrived, unsigned* __restrict__ idle,
                 typename CountTraits<Wide>::Type* __restrict__ board, Int64 board_size, Int64 n,
                 Int64 chunk, unsigned chunks, const Order order) {
  using Count = typename CountTraits<Wide>::Type;
  constexpr int kPlaces = static_cast<int>(sizeof(Bits));
  __shared__ unsigned count[kPlaces][kDigits];
  const Int64 step = static_cast<Int64>(gridDim.x) * kDigits;
  for (Int64 i = static_cast<Int64>(blockIdx.x) * kDigits + threadIdx.x; i < board_size; i += step)
    board[i] = 0;
#pragma unroll
  for (int p = 0; p < kPlaces; ++p) count[p][threadIdx.x] = 0;
  __syncthreads();
  const unsigned row = blockIdx.x / chunks;
  const Int64 begin = (blockIdx.x - row * chunks) * chunk;
  const Int64 end = begin + chunk < n ? begin + chunk : n;
  const Bits* const from = x + row * n;
  const Keys<Bits, Floats> keys(order, 0);
  for (Int64 tile = begin + threadIdx.x; tile < end; tile += kCountItems * kDigits) {
    Bits value[kCountItems];
#pragma unroll
    for (int i = 0; i < kCountItems; ++i) {
      if (tile + i * kDigits < end) value[i] = from[tile + i * kDigits];
    }
#pragma unroll
    for (int i = 0; i < kCountItems; ++i) {
      if (tile + i * kDigits >= end) break;
      const Bits key = keys.key(value[i]);
#pragma unroll
      for (int p = 0; p < kPlaces; ++p)
        atomicAdd(&count[p][static_cast<unsigned>(key >> (8 * p)) & (kDigits - 1)], 1u);
    }
  }
  __syncthreads();
  Count* const row_counts = counts + static_cast<Int64>(row) * kPlaces * kDigits + threadIdx.x;
#pragma unroll
  for (int p = 0; p < kPlaces; ++p) {
    const unsigned found = count[p][threadIdx.x];
    if (found != 0) atomicAdd(row_counts + p * kDigits, static_cast<Count>(found));
  }
  // The last block of the row to come here sums the counts of all.
  if (!is_last_block(arrived + row, chunks)) return;
  unsigned rests = 0;
  for (int p = 0; p < kPlaces; ++p) {
    const Count all = *const_cast<const volatile Count*>(row_counts + p * kDigits);
    Count total;
    row_counts[p * kDigits] = block_sum_before<kDigits>(all, total);
    const bool alike = __syncthreads_or(static_cast<Int64>(all) == n) != 0;
    if (alike && p + 1 < kPlaces) rests |= 1u << p;
  }
  if (threadIdx.x == 0) idle[row] = rests;
}

// ---- moving by one digit

/// The words of a board: for each tile and digit a count of elements and, in the two highest bits,
/// what it is of. 0: not known yet.
template <typename Count>
struct BoardWord {
  static constexpr Count kLocal = Count(1) << (8 * sizeof(Count) - 2);  ///< of the tile
  static constexpr Count kWhole = kLocal << 1;  ///< the place in the row behind the tile's elements
  static constexpr Count kValue = kLocal - 1;
};

__device__ __forceinline__ UInt32 load_word(const UInt32* from) {
  UInt32 word;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(word) : "l"(from) : "memory");
  return word;
}
__device__ __forceinline__ UInt64 load_word(const UInt64* from) {
  UInt64 word;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(word) : "l"(from) : "memory");
  return word;
}
__device__ __forceinline__ void store_word(UInt32* to, UInt32 word) {
  asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(to), "r"(word) : "memory");
}
__device__ __forceinline__ void store_word(UInt64* to, UInt64 word) {
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(to), "l"(word) : "memory");
}

constexpr unsigned kAhead = 4;

/// The begin in the row of the elements of one digit of `tile` (not 0). `board` is the tile's word
/// of the digit. Tiles of lower numbers started earlier: they do not wait for this tile.
template <typename Count>
__device__ __forceinline__ Count place_before(const Count* board, unsigned tile) {
  using Word = BoardWord<Count>;
  Count sum = 0;
  for (unsigned next = tile;;) {  // the tiles from there on are in the sum
    Count word[kAhead];
#pragma unroll
    for (unsigned j = 0; j < kAhead; ++j) {
      const unsigned at = next > j ? next - 1 - j : 0;
      word[j] = load_word(board - static_cast<Int64>(tile - at) * kDigits);
    }
    bool known = true;
#pragma unroll
    for (unsigned j = 0; j < kAhead; ++j) {
      known = known && word[j] != 0;
      if (!known) continue;
      sum += word[j] & Word::kValue;
      if (word[j] >= Word::kWhole) return sum;
      --next;
    }
  }
}

/// Digits of a thread's elements, four in a register.
template <int Items>
struct ThreadDigits {
  unsigned word[(Items + 3) / 4] = {};
  __device__ __forceinline__ void put(int i, unsigned digit) {
    word[i / 4] |= digit << (8 * (i % 4));
  }
  __device__ __forceinline__ unsigned operator[](int i) const {
    return word[i / 4] >> (8 * (i % 4)) & (kDigits - 1);
  }
};

/// The stable ranks in the tile of a warp's elements, the item before the lane. `next` has the rank
/// of the warp's first element of each digit. All lanes of a digit write one value to it.
template <int Items>
__device__ __forceinline__ void rank_in_warp(unsigned* next, const ThreadDigits<Items>& digits,
                                             unsigned (&rank)[Items]) {
  const unsigned lower = (1u << threadIdx.x % 32) - 1;
#pragma unroll
  for (int i = 0; i < Items; ++i) {
    const unsigned digit = digits[i], lanes = digit_lanes(digit);
    const unsigned place = next[digit];
    rank[i] = place + __popc(lanes & lower);
    __syncwarp();
    next[digit] = place + __popc(lanes);
    __syncwarp();
  }
}

/// The arrays of a sort. Passes that move something write to `second` and `first` by turns, the
/// last one to `first` if `keep`, and to `indices`.
template <typename Bits, typename Number>
struct Sides {
  const Bits* from;
  Bits *first, *second;
  Number *first_numbers, *second_numbers;
  Int64* indices;
  int keep;
};

/// The arrays of one pass; either target may be null. Without `numbers`, the numbers are the places
/// in the row.
template <typename Bits, typename Number>
struct Move {
  const Bits* from;
  Bits* to;
  const Number* numbers;
  Number* to_numbers;
  Int64* indices;

  /// `busy` has a bit for each pass that moves something.
  __device__ Move(const Sides<Bits, Number>& sides, unsigned busy, int pass, Int64 row) {
    const bool is_first = (busy & ((1u << pass) - 1)) == 0;
    const bool is_last = busy >> pass == 1;
    const bool to_second = __popc(busy >> pass) % 2 == 0;
    from = (is_first ? sides.from : to_second ? sides.first : sides.second) + row;
    numbers = to_second ? sides.first_numbers : sides.second_numbers;
    numbers = is_first ? nullptr : numbers + row;
    to = (to_second ? sides.second : sides.first) + row;
    to_numbers = (to_second ? sides.second_numbers : sides.first_numbers) + row;
    if (is_last && !sides.keep) to = nullptr;
    if (is_last) to_numbers = nullptr;
    indices = is_last ? sides.indices + row : nullptr;
  }
};

/// Places of a thread's items in a tile: Step apart. Items from `valid` on do not exist, possible
/// only in a tile that is not Full.
template <bool Full, int Step>
struct Slots {
  int first, valid;
  __device__ __forceinline__ int operator[](int item) const { return first + item * Step; }
  __device__ __forceinline__ bool has(int item) const { return Full || (*this)[item] < valid; }

  template <typename T, int Items>
  __device__ __forceinline__ void load(T (&value)[Items], const T* from) const {
#pragma unroll
    for (int i = 0; i < Items; ++i) {
      if constexpr (!Full) value[i] = 0;
      if (has(i)) value[i] = from[(*this)[i]];
    }
  }
  template <typename To, typename T, typename Place, int Items>
  __device__ __forceinline__ void store(To* to, const T (&value)[Items],
                                        const Place (&place)[Items]) const {
#pragma unroll
    for (int i = 0; i < Items; ++i) {
      if (has(i)) to[place[i]] = static_cast<To>(value[i]);
    }
  }
};

/// Shared memory of a block that moves a tile.
template <typename Count>
struct TileMemory {
  unsigned char* dynamic;  ///< the warps' counts of digits, then the tile
  Count* place;            ///< of a digit in the row, less the tile's first rank
};

/// A block's tile: number `index` of the row, `offset` elements behind the row's begin. `board` is
/// the board of the tile; `begins` are the first ranks of the row's digits.
template <typename Count>
struct MovedTile {
  Int64 offset;
  unsigned index;
  int valid;
  Count* board;
  const Count* begins;
};

template <bool Floats, int Threads, int Items, bool HasNumbers, bool Full, typename Bits,
          typename Count>
__device__ __forceinline__ void move_tile(const Move<Bits, Count>& move,
                                          const Keys<Bits, Floats>& keys,
                                          const TileMemory<Count>& memory,
                                          const MovedTile<Count>& tile) {
  constexpr int kWarps = Threads / 32;
  using Word = BoardWord<Count>;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const bool has_digit = Threads == kDigits || threadIdx.x < kDigits;
  auto* const warp_counts = reinterpret_cast<unsigned(*)[kDigits]>(memory.dynamic);
  const Slots<Full, 32> before{warp * 32 * Items + lane, tile.valid};
  const Slots<Full, Threads> after{static_cast<int>(threadIdx.x), tile.valid};
  Bits value[Items];
  before.load(value, move.from + tile.offset);
  // Missing items are ranked behind all elements of the last digit, and not counted.
  ThreadDigits<Items> digits;
#pragma unroll
  for (int i = 0; i < Items; ++i) {
    const unsigned digit = before.has(i) ? keys.digit(value[i]) : kDigits - 1;
    digits.put(i, digit);
    if (before.has(i)) atomicAdd(&warp_counts[warp][digit], 1u);
  }
  __syncthreads();

  // The tile's counts are posted before the tile's own ranks are known.
  unsigned count = 0;
  Count whole = 0;
  if (has_digit) {
#pragma unroll
    for (int w = 0; w < kWarps; ++w) count += warp_counts[w][threadIdx.x];
    if (tile.index == 0) {
      whole = tile.begins[threadIdx.x];
      store_word(tile.board + threadIdx.x, Word::kWhole | (whole + count));
    } else {
      store_word(tile.board + threadIdx.x, Word::kLocal | count);
    }
  }
  unsigned total;
  const unsigned start = block_sum_before<Threads>(count, total);
  if (has_digit) {
    unsigned next = start;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      const unsigned here = warp_counts[w][threadIdx.x];
      warp_counts[w][threadIdx.x] = next;
      next += here;
    }
  }
  __syncthreads();
  unsigned rank[Items];
  rank_in_warp<Items>(warp_counts[warp], digits, rank);
  __syncthreads();

  Bits* const values = reinterpret_cast<Bits*>(memory.dynamic);
  before.store(values, value, rank);
  Count number[HasNumbers ? Items : 1];
  if constexpr (HasNumbers) {
    if (move.numbers != nullptr) {
      before.load(number, move.numbers + tile.offset);
    } else {
#pragma unroll
      for (int i = 0; i < Items; ++i) number[i] = static_cast<Count>(tile.offset + before[i]);
    }
  }
  if (has_digit) {
    if (tile.index > 0) {
      whole = place_before(tile.board + threadIdx.x, tile.index);
      store_word(tile.board + threadIdx.x, Word::kWhole | (whole + count));
    }
    memory.place[threadIdx.x] = whole - start;
  }
  __syncthreads();
  after.load(value, values);
  Count target[Items];
#pragma unroll
  for (int i = 0; i < Items; ++i)
    target[i] = static_cast<Count>(memory.place[keys.digit(value[i])] + after[i]);
  if (move.to != nullptr) after.store(move.to, value, target);
  if constexpr (HasNumbers) {
    __syncthreads();
    Count* const numbers = reinterpret_cast<Count*>(memory.dynamic);
    before.store(numbers, number, rank);
    __syncthreads();
    after.load(number, numbers);
    if (move.to_numbers != nullptr) after.store(move.to_numbers, number, target);
    if (move.indices != nullptr) after.store(move.indices, number, target);
  }
}

/// Moves the elements of a tile by digit number `pass`, and the indices in the row where
/// HasNumbers. `counts` come from count_digits(); `ticket` is 0 before, `board` is all zeros
/// before, and `next_board` afterwards unless null. Dynamic shared memory holds a tile of elements
/// or numbers, and before that 256 counts for each warp.
template <typename Bits, bool Floats, int Threads, int Items, bool HasNumbers, bool Wide>
__global__ void __launch_bounds__(Threads, 768 / Threads)
    move_digits(const Sides<Bits, typename CountTraits<Wide>::Type> sides,
                const typename CountTraits<Wide>::Type* __restrict__ counts,
                const unsigned* __restrict__ idle, unsigned* __restrict__ ticket,
                typename CountTraits<Wide>::Type* __restrict__ board,
                typename CountTraits<Wide>::Type* __restrict__ next_board, Int64 n, unsigned tiles,
                int pass, const Order order) {
  using Count = typename CountTraits<Wide>::Type;
  constexpr int kTile = Threads * Items, kPlaces = static_cast<int>(sizeof(Bits));
  extern __shared__ __align__(16) unsigned char dynamic[];
  __shared__ Count place[kDigits];
  __shared__ unsigned taken;
  if (threadIdx.x == 0) taken = atomicAdd(ticket, 1u);
  const unsigned rests_first = *idle;  // of row 0, before the ticket is known
  if (next_board != nullptr && threadIdx.x < kDigits)
    next_board[static_cast<Int64>(blockIdx.x) * kDigits + threadIdx.x] = 0;
#pragma unroll
  for (int i = 0; i < kDigits; i += 32)
    reinterpret_cast<unsigned*>(dynamic)[threadIdx.x / 32 * kDigits + i + threadIdx.x % 32] = 0;
  __syncthreads();
  const unsigned row = taken / tiles, tile = taken - row * tiles;
  const unsigned busy = ~(row == 0 ? rests_first : idle[row]) & ((1u << kPlaces) - 1);
  if ((busy >> pass & 1) == 0) return;
  const Move<Bits, Count> move(sides, busy, pass, row * n);
  const Keys<Bits, Floats> keys(order, pass);
  const TileMemory<Count> memory = {dynamic, place};
  const Int64 offset = static_cast<Int64>(tile) * kTile;
  const int valid = static_cast<int>(n - offset < kTile ? n - offset : kTile);
  const MovedTile<Count> moved = {offset, tile, valid, board + static_cast<Int64>(taken) * kDigits,
                                  counts + (static_cast<Int64>(row) * kPlaces + pass) * kDigits};
  if (valid == kTile) {
    move_tile<Floats, Threads, Items, HasNumbers, true>(move, keys, memory, moved);
  } else {
    move_tile<Floats, Threads, Items, HasNumbers, false>(move, keys, memory, moved);
  }
}
