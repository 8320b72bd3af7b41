// Adds rows to named slots, in the order of the rows: a stable sort by slot makes the rows of a
// slot neighbours, then one thread adds one pack of all these rows.
#include <kernwright/elements.cuh>
#include <kernwright/walk.cuh>

using namespace kernwright;

constexpr int kAhead = 4;

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

/// Entry j is row numbers[j], for slot slots[j]; entries are sorted by slot, then by number. The
/// thread at the first entry of a slot adds all rows of the slot, in order, to N elements from e
/// on, in the type in which T computes. `row` walks the elements of a slot: neighbours for N above
/// 1. `packs` of N are a row.
template <typename T, int N>
__global__ void add_segments(char* __restrict__ to, const T* __restrict__ values,
                             const long long* __restrict__ slots,
                             const long long* __restrict__ numbers, const Walk<1> row,
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
    const long long slot = slots[j];
    if (slot >= slot_count || (j > 0 && slots[j - 1] == slot)) continue;
    long long offset = walk_offsets(row, static_cast<unsigned long long>(e) * N).offset[0];
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
    // Loads of several rows are in flight, and are added one after the other.
    for (bool more = true; more; j += kAhead) {
      bool belongs[kAhead];
      long long from[kAhead];
      Values value[kAhead];
#pragma unroll
      for (int a = 0; a < kAhead; ++a) {
        const long long at = j + a < entries ? j + a : entries - 1;
        belongs[a] = j + a < entries && slots[at] == slot;
        from[a] = numbers[at] * packs + e;
      }
#pragma unroll
      for (int a = 0; a < kAhead; ++a) {
        if (belongs[a]) value[a] = rows[from[a]];
      }
#pragma unroll
      for (int a = 0; a < kAhead; ++a) {
        if (!belongs[a]) continue;
#pragma unroll
        for (int n = 0; n < N; ++n) sum[n] = plus(sum[n], to_compute(value[a].value[n]));
      }
      more = belongs[kAhead - 1];
    }
#pragma unroll
    for (int n = 0; n < N; ++n) total.value[n] = from_compute<T>(sum[n]);
    *target = total;
  }
}
