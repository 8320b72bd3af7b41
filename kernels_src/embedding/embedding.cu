// Rows of a table by their numbers.
#include <kernwright/elements.cuh>
#include <kernwright/overlap.cuh>

using namespace kernwright;

constexpr int kThreads = 256;

/// Groups of `Lanes` threads have a row each, of whole packs. A number outside of [0, vocabulary)
/// gives zeros; the lowest place of one goes to `*bad` unless that is null.
template <typename T, typename Id, int N, int Lanes>
__global__ void __launch_bounds__(kThreads)
    embed(const Id* __restrict__ ids, const T* __restrict__ table, T* __restrict__ rows,
          long long count, long long vocabulary, long long cols, long long table_stride,
          Compute<T> scale, unsigned long long* __restrict__ bad) {
  pdl_wait_then_launch();
  const int lane = threadIdx.x % Lanes;
  const long long row =
      static_cast<long long>(blockIdx.x) * (kThreads / Lanes) + threadIdx.x / Lanes;
  if (row >= count) return;
  const long long id = static_cast<long long>(ids[row]);
  const bool inside = id >= 0 && id < vocabulary;
  if (!inside && bad != nullptr && lane == 0) atomicMin(bad, static_cast<unsigned long long>(row));
  const T* const from = table + (inside ? id : 0) * table_stride;
  T* const to = rows + row * cols;
  Pack<T, N> zeros;
#pragma unroll
  for (int j = 0; j < N; ++j) zeros.value[j] = from_compute<T>(Compute<T>(0));
  if (scale == 1 || !inside) {
#pragma unroll 4
    for (long long col = lane * N; col < cols; col += Lanes * N)
      *reinterpret_cast<Pack<T, N>*>(to + col) =
          inside ? *reinterpret_cast<const Pack<T, N>*>(from + col) : zeros;
    return;
  }
#pragma unroll 1
  for (long long col = lane * N; col < cols; col += Lanes * N) {
    Pack<T, N> pack = *reinterpret_cast<const Pack<T, N>*>(from + col);
#pragma unroll
    for (int j = 0; j < N; ++j) pack.value[j] = from_compute<T>(to_compute(pack.value[j]) * scale);
    *reinterpret_cast<Pack<T, N>*>(to + col) = pack;
  }
}
