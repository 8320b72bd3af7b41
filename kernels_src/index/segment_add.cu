// Adds rows to the slots that they name, in the order of the rows: a stable sort by slot brings
// the rows of a slot together, then one thread adds a pack of all of them.
#include <kernwright/elements.cuh>
#include <kernwright/walk.cuh>

using namespace kernwright;

constexpr int kThreads = 256;
constexpr int kRounds = 4;
constexpr int kTile = kThreads * kRounds;
constexpr int kWarps = kThreads / 32;
constexpr int kDigits = 256;
constexpr int kAhead = 4;

struct Entry {
  long long slot, row;
};

__device__ __forceinline__ int digit_of(long long slot, int shift) {
  return static_cast<int>(slot >> shift) & (kDigits - 1);
}

__global__ void make_entries(const long long* __restrict__ slots, Entry* __restrict__ entries,
                             long long count) {
  const long long i = blockIdx.x * static_cast<long long>(kThreads) + threadIdx.x;
  if (i < count) entries[i] = {slots[i], i};
}

/// counts[digit * blocks + b]: how often the digit stands in tile b.
__global__ void count_digits(const Entry* __restrict__ entries, long long* __restrict__ counts,
                             int shift, long long count) {
  __shared__ int found[kDigits];
  found[threadIdx.x] = 0;
  __syncthreads();
  for (int r = 0; r < kRounds; ++r) {
    const long long i = blockIdx.x * static_cast<long long>(kTile) + r * kThreads + threadIdx.x;
    if (i < count) atomicAdd(&found[digit_of(entries[i].slot, shift)], 1);
  }
  __syncthreads();
  counts[threadIdx.x * static_cast<long long>(gridDim.x) + blockIdx.x] = found[threadIdx.x];
}

/// Lanes of the warp with the same digit and the same `active`.
__device__ __forceinline__ unsigned same_digit(int digit, bool active) {
  const unsigned present = __ballot_sync(~0u, active);
  unsigned same = active ? present : ~present;
#pragma unroll
  for (int bit = 0; bit < 8; ++bit) {
    const bool set = (digit >> bit & 1) != 0;
    const unsigned with = __ballot_sync(~0u, set);
    same &= set ? with : ~with;
  }
  return same;
}

/// Moves the entries of tile b to where `begins` says, those of one digit in their order.
__global__ void place_entries(const Entry* __restrict__ entries, Entry* __restrict__ sorted,
                              const long long* __restrict__ begins, int shift, long long count) {
  __shared__ long long next[kDigits];
  __shared__ int of_warp[kWarps][kDigits];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  next[threadIdx.x] = begins[threadIdx.x * static_cast<long long>(gridDim.x) + blockIdx.x];
  for (int r = 0; r < kRounds; ++r) {
    const long long i = blockIdx.x * static_cast<long long>(kTile) + r * kThreads + threadIdx.x;
    const bool active = i < count;
    const Entry entry = active ? entries[i] : Entry{0, 0};
    const int digit = digit_of(entry.slot, shift);
    for (int w = 0; w < kWarps; ++w) of_warp[w][threadIdx.x] = 0;
    __syncthreads();
    const unsigned same = same_digit(digit, active);
    const int rank = __popc(same & ((1u << lane) - 1));
    if (active && rank == 0) of_warp[warp][digit] = __popc(same);
    __syncthreads();
    long long before = active ? next[digit] : 0;
    for (int w = 0; w < warp; ++w) before += of_warp[w][digit];
    if (active) sorted[before + rank] = entry;
    __syncthreads();
    for (int w = 0; w < kWarps; ++w) next[threadIdx.x] += of_warp[w][threadIdx.x];
    __syncthreads();
  }
}

template <typename T>
__device__ __forceinline__ T plus(T a, T b) {
  return a + b;
}
template <typename Part>
__device__ __forceinline__ Complex<Part> plus(Complex<Part> a, Complex<Part> b) {
  return {a.real + b.real, a.imag + b.imag};
}

constexpr int kMaxAxes = 16;
struct SlotAxes {
  long long extent[kMaxAxes];
  long long stride[kMaxAxes];
  int count;
};

/// N elements from e on of the slot of the segment that begins at entry j take those of all its
/// rows, one after the other, in the type that T computes in. `row` walks the elements of a slot,
/// which for N above 1 are neighbours; `packs` of N are a row.
template <typename T, int N>
__global__ void add_segments(char* __restrict__ to, const T* __restrict__ values,
                             const Entry* __restrict__ sorted, const Walk<1> row,
                             const SlotAxes axes, long long slot_count, long long packs,
                             long long entries) {
  using Values = Pack<T, N>;
  const long long count = entries * packs;
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
  const Values* const rows = reinterpret_cast<const Values*>(values);
  for (long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x; i < count;
       i += step) {
    long long j = i / packs;
    const long long e = i - j * packs;
    const long long slot = sorted[j].slot;
    if (slot >= slot_count || (j > 0 && sorted[j - 1].slot == slot)) continue;
    long long offset = walk_offsets(row, static_cast<unsigned long long>(e) * N).of[0];
    long long rest = slot;
    for (int a = 0; a < axes.count; ++a) {
      const long long outer = rest / axes.extent[a];
      offset += (rest - outer * axes.extent[a]) * axes.stride[a];
      rest = outer;
    }
    Values* const target = reinterpret_cast<Values*>(to + offset);
    Values total = *target;
    Compute<T> sum[N];
#pragma unroll
    for (int n = 0; n < N; ++n) sum[n] = to_compute(total.value[n]);
    // Several rows at once are on their way, and are added one after the other.
    for (bool more = true; more; j += kAhead) {
      bool mine[kAhead];
      long long from[kAhead];
      Values value[kAhead];
#pragma unroll
      for (int a = 0; a < kAhead; ++a) {
        const Entry entry = sorted[j + a < entries ? j + a : entries - 1];
        mine[a] = j + a < entries && entry.slot == slot;
        from[a] = entry.row * packs + e;
      }
#pragma unroll
      for (int a = 0; a < kAhead; ++a) {
        if (mine[a]) value[a] = rows[from[a]];
      }
#pragma unroll
      for (int a = 0; a < kAhead; ++a) {
        if (!mine[a]) continue;
#pragma unroll
        for (int n = 0; n < N; ++n) sum[n] = plus(sum[n], to_compute(value[a].value[n]));
      }
      more = mine[kAhead - 1];
    }
#pragma unroll
    for (int n = 0; n < N; ++n) total.value[n] = from_compute<T>(sum[n]);
    *target = total;
  }
}
