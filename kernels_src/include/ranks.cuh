// Places within a block: sums over the threads before, ranks of digits, and sorts of short
// segments.
#pragma once

namespace kernwright {

template <typename T>
struct ItsType {
  using Type = T;
};

/// The sum of `value` over the threads of the block with lower numbers, and over all in `total`.
/// `total` has the type of the sums: unsigned numbers of 32 or 64 bits. Every thread of the
/// `Threads` (a multiple of 32) must call it.
template <int Threads, typename T>
__device__ __forceinline__ T block_sum_before(typename ItsType<T>::Type value, T& total) {
  __shared__ T sums[Threads / 32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  T through = value;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const T other = __shfl_up_sync(~0u, through, step);
    if (lane >= step) through += other;
  }
  __syncthreads();  // an earlier call may still be read
  if (lane == 31) sums[warp] = through;
  __syncthreads();
  T before = 0;
  total = 0;
#pragma unroll
  for (int i = 0; i < Threads / 32; ++i) {
    const T sum = sums[i];
    if (i < warp) before += sum;
    total += sum;
  }
  return before + through - value;
}

/// The sum of a 64-bit number over all threads of the block, for each of them.
template <int Threads>
__device__ __forceinline__ long long block_total(long long value) {
  __shared__ long long sums[Threads / 32];
#pragma unroll
  for (int mask = 16; mask > 0; mask /= 2) value += __shfl_xor_sync(~0u, value, mask);
  __syncthreads();
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = value;
  __syncthreads();
  long long total = 0;
#pragma unroll
  for (int i = 0; i < Threads / 32; ++i) total += sums[i];
  return total;
}

constexpr int kDigits = 256;

/// The lanes of the warp with the caller's digit. All lanes must call it. As assembly, in four
/// instructions a bit: compilers would move the tests of bits to the making of digits, and keep and
/// spill them.
__device__ __forceinline__ unsigned digit_lanes(unsigned digit) {
  unsigned lanes = ~0u;
#pragma unroll
  for (unsigned bit = 1; bit < kDigits; bit *= 2) {
    asm volatile(
        "{\n"
        ".reg .pred set;\n"
        ".reg .b32 those, other;\n"
        "and.b32 those, %1, %2;\n"
        "setp.ne.b32 set, those, 0;\n"
        "vote.sync.ballot.b32 those, set, 0xffffffff;\n"
        "selp.b32 other, 0, -1, set;\n"
        "lop3.b32 %0, %0, those, other, 0x60;\n"  // %0 & (those ^ other)
        "}"
        : "+r"(lanes)
        : "r"(digit), "r"(bit));
  }
  return lanes;
}

template <typename Bits>
__device__ __forceinline__ unsigned pick_digit(Bits key, int shift) {
  return static_cast<unsigned>(key >> shift) & (kDigits - 1);
}

/// Shared memory of rank_digits(), for a block of 256 threads.
struct DigitRanks {
  static constexpr int kWarps = kDigits / 32;
  unsigned place[kWarps][kDigits];
  unsigned start[kDigits];  ///< the first place of each digit
};

/// Stable ranks of a block's elements sorted by a digit of the keys: eight bits from `shift` on.
/// Element `item` of a lane is number 32 * (Items * warp + item) + lane of the block. Thread d
/// returns the count of digit d. The caller reads `start` after the call, and synchronises before
/// the next call.
template <int Items, typename Bits>
__device__ __forceinline__ unsigned rank_digits(DigitRanks& ranks, const Bits (&key)[Items],
                                                int shift, unsigned (&rank)[Items]) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
  for (int w = 0; w < DigitRanks::kWarps; ++w) ranks.place[w][threadIdx.x] = 0;
  __syncthreads();
#pragma unroll
  for (int i = 0; i < Items; ++i) {
    const unsigned digit = pick_digit(key[i], shift), lanes = digit_lanes(digit);
    const int leader = __ffs(static_cast<int>(lanes)) - 1;
    unsigned before = 0;
    if (lane == leader) {
      before = ranks.place[warp][digit];
      ranks.place[warp][digit] = before + __popc(lanes);
    }
    __syncwarp();
    before = __shfl_sync(~0u, before, leader);
    rank[i] = before + __popc(lanes & ((1u << lane) - 1));
  }
  __syncthreads();
  unsigned count = 0;
#pragma unroll
  for (int w = 0; w < DigitRanks::kWarps; ++w) count += ranks.place[w][threadIdx.x];
  unsigned total;
  unsigned next = block_sum_before<kDigits>(count, total);
  ranks.start[threadIdx.x] = next;
#pragma unroll
  for (int w = 0; w < DigitRanks::kWarps; ++w) {
    const unsigned here = ranks.place[w][threadIdx.x];
    ranks.place[w][threadIdx.x] = next;
    next += here;
  }
  __syncthreads();
  asm volatile("" : "+r"(shift));  // digits are made again: kept ones would be spilled
#pragma unroll
  for (int i = 0; i < Items; ++i) rank[i] += ranks.place[warp][pick_digit(key[i], shift)];
  return count;
}

/// Sorts each segment of `segment` (a power of two) of the `count` entries in shared memory by <,
/// with a bitonic network. `count` is a multiple of `segment`. All threads of the block call it,
/// and may read the result without a barrier of their own.
template <int Threads, typename Entry>
__device__ __forceinline__ void sort_segments(Entry* entries, int count, int segment) {
  __syncthreads();
  for (int size = 2; size <= segment; size *= 2) {
    for (int stride = size / 2; stride > 0; stride /= 2) {
      for (int pair = threadIdx.x; pair < count / 2; pair += Threads) {
        const int low = 2 * pair - (pair & (stride - 1));
        const Entry a = entries[low], b = entries[low + stride];
        const bool rising = (low & (segment - 1) & size) == 0;
        if ((b < a) == rising) {
          entries[low] = b;
          entries[low + stride] = a;
        }
      }
      // Up to a stride of 32 a warp sorts 64 neighbours alone.
      if (stride > 32 || (stride == 1 && size >= 64)) {
        __syncthreads();
      } else {
        __syncwarp();
      }
    }
  }
  __syncthreads();
}

}  // namespace kernwright
