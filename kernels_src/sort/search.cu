// Binary search in sorted elements, one thread a wanted element.
#include <kernwright/order.cuh>

using namespace kernwright;

constexpr int kThreads = 256;

/// How many of the `n` elements are below `key`, or not above it. `sorter`, unless it is null,
/// holds the places of the elements in order; a place outside counts as the nearest inside.
template <bool Right, typename Bits>
__device__ __forceinline__ Int64 elements_before(const Bits* sorted, const Int64* sorter, Int64 n,
                                                 Bits key, const Order& order) {
  Int64 low = 0, high = n;
  while (low < high) {
    const Int64 middle = low + (high - low) / 2;
    Int64 at = middle;
    if (sorter != nullptr) {
      at = sorter[middle];
      at = at < 0 ? 0 : at < n ? at : n - 1;
    }
    const Bits other = order_key(sorted[at], order);
    const bool before = Right ? !(key < other) : other < key;
    low = before ? middle + 1 : low;
    high = before ? high : middle;
  }
  return low;
}

template <typename Bits, bool Right>
__global__ void search_sorted(const Bits* __restrict__ sorted, const Int64* __restrict__ sorter,
                              Int64 n, const Bits* __restrict__ wanted, Int64* __restrict__ places,
                              Int64 count, const Order order) {
  const Int64 step = static_cast<Int64>(gridDim.x) * kThreads;
  for (Int64 i = static_cast<Int64>(blockIdx.x) * kThreads + threadIdx.x; i < count; i += step) {
    places[i] = elements_before<Right>(sorted, sorter, n, order_key(wanted[i], order), order);
  }
}

/// Whether each wanted element is among the sorted ones, or is not with `invert`. NaN never is.
template <typename Bits>
__global__ void find_members(const Bits* __restrict__ sorted, Int64 n,
                             const Bits* __restrict__ wanted, Bool* __restrict__ found, Int64 count,
                             int invert, const Order order) {
  const Int64 step = static_cast<Int64>(gridDim.x) * kThreads;
  for (Int64 i = static_cast<Int64>(blockIdx.x) * kThreads + threadIdx.x; i < count; i += step) {
    const Bits value = wanted[i];
    const Bits key = order_key(value, order);
    const Int64 at =
        elements_before<false>(sorted, static_cast<const Int64*>(nullptr), n, key, order);
    const bool here = at < n && order_key(sorted[at], order) == key && !is_nan(value, order);
    found[i] = Bool{static_cast<unsigned char>(here != (invert != 0))};
  }
}
