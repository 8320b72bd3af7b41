// Adds up the parts of tiles that clusters of blocks shared along the inner dimension, in their
// order, and does what follows them.
#include <kernwright/product_epilogue.cuh>
#include <kernwright/product_stages.cuh>

using namespace kernwright;

constexpr int kThreads = 256;

/// A thread has kWidth neighbours of a tile of kRows x kColumns, those of a cluster. The grid has
/// what all streamed tiles need; one that a cluster had alone is written already.
template <typename Out, typename Finish, int kRows, int kColumns, int kWidth>
__global__ void __launch_bounds__(kThreads)
    finish_stream(const Streamed<Problem> given, Out* __restrict__ out,
                  const ProductEpilogueValues with) {
  constexpr int kBlocks = kRows * kColumns / (kThreads * kWidth);  // of a tile
  constexpr int kSize = kRows * kColumns;
  const Problem& of = given.of;
  const int tile = blockIdx.x / kBlocks, begin = tile * of.steps, end = begin + of.steps;
  const int inside = (blockIdx.x % kBlocks * kThreads + threadIdx.x) * kWidth;
  const Place at = given.place(given.waves * given.clusters + tile, tile);
  const int row = at.row * kRows + inside / kColumns;
  const int column = at.column * kColumns + inside % kColumns;
  int cluster = static_cast<int>(static_cast<long long>(begin) * given.clusters /
                                 (static_cast<long long>(given.tiles) * of.steps));
  while (given.begin(cluster + 1) <= begin) ++cluster;
  if (given.begin(cluster + 1) >= end || row >= of.rows || column >= of.columns) return;
  Pack<float, kWidth> total{};
#pragma unroll 2
  for (; given.begin(cluster) < end; ++cluster) {
    const int second = given.begin(cluster) / of.steps == tile ? 0 : 1;
    const float* const from =
        given.sums + static_cast<long long>(cluster * 2 + second) * kSize + inside;
    const auto more = *reinterpret_cast<const Pack<float, kWidth>*>(from);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) total.value[i] += more.value[i];
  }
  const long long place = (static_cast<long long>(at.batch) * of.rows + row) * of.columns + column;
  const Factors<Finish> of_row(with.row_scales, row, 0, of.rows);
  Pack<Out, kWidth> result, added;
  if constexpr (Finish::kHasC) {
    added = *reinterpret_cast<const Pack<Out, kWidth>*>(static_cast<const Out*>(with.c) + place);
  }
#pragma unroll
  for (int i = 0; i < kWidth; ++i) {
    const float c = Finish::kHasC ? to_compute(added.value[i]) : 0.0f;
    const Biases bias = Finish::biases(with, column + i, of.columns);
    const Factors<Finish> of_column(with.column_scales, column + i, 0, of.columns);
    const float sum = scaled(total.value[i], of_row, 0, of_column, 0);
    result.value[i] = from_compute<Out>(Finish::finish(with, sum, 0, bias, 0, c));
  }
  *reinterpret_cast<Pack<Out, kWidth>*>(out + place) = result;
}
