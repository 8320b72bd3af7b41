// Products with some rows on Hopper, where tiles of the weights' rows fill the device: a block has
// all of k, so that no sums are left to add. x are the rows of products by a warpgroup (wgmma), the
// weights their columns.
#include <kernwright/product_stages.cuh>
#include <kernwright/skinny.cuh>
#include <kernwright/wgmma_rows.cuh>

using namespace kernwright;

/// Shared memory of a block: stages of 128 bytes of each row of x and of the weights, two barriers
/// for each stage.
template <int Columns, int Stages>
struct WholeStages {
  static constexpr int kRows = 64, kDepth = 64, kBytes = (kRows + Columns) * kLine;
  unsigned char* base;
  Mbarrier *full, *empty;

  __device__ explicit WholeStages(unsigned char* at)
      : base(at), full(reinterpret_cast<Mbarrier*>(at + Stages * kBytes)), empty(full + Stages) {}
  __device__ unsigned char* x(int stage) const { return base + stage * kBytes; }
  __device__ unsigned char* weights(int stage) const { return x(stage) + kRows * kLine; }
};

/// All of k, by one thread.
template <typename Of, int Stages>
__device__ __forceinline__ void load_stages(const Of& shared, const TensorMap& map_weights,
                                            const TensorMap& map_x, int first, int chunks,
                                            Ring<Stages>& ring) {
  for (int chunk = 0; chunk < chunks; ++chunk, ring.advance()) {
    Mbarrier& full = shared.full[ring.stage];
    shared.empty[ring.stage].wait(ring.parity ^ 1);
    full.arrive_expecting(Of::kBytes);
    const int k = chunk * Of::kDepth;
    load_box(shared.weights(ring.stage), map_weights, {k, first, 0, 0}, full);
    load_box(shared.x(ring.stage), map_x, {k, 0, 0, 0}, full);
  }
}

/// The products of a stage run while the next one's begin.
template <typename T, int Columns, typename Of, int Stages>
__device__ __forceinline__ void multiply_stages(const Of& shared, int lane, int chunks,
                                                Ring<Stages>& ring, float (&sums)[Columns / 2]) {
  int previous = 0;
#pragma unroll
  for (float& sum : sums) sum = 0;
  for (int chunk = 0; chunk < chunks; ++chunk) {
    shared.full[ring.stage].wait(ring.parity);
    const unsigned a = shared_address(shared.x(ring.stage));
    const unsigned b = shared_address(shared.weights(ring.stage));
    begin_products();
#pragma unroll
    for (int k = 0; k < Of::kDepth / 16; ++k) {
      Products<T, Columns, false, false>::add(sums, matrix_descriptor(a + k * 32, kPart),
                                              matrix_descriptor(b + k * 32, kPart), 1);
    }
    commit_products();
    wait_for_products<1>();
    if (chunk > 0) give_back<1>(shared.empty[previous], lane);
    previous = ring.stage;
    ring.advance();
  }
  wait_for_products<0>();
  settle(sums);
  give_back<1>(shared.empty[previous], lane);
}

/// A lane's sums of a warp's 16 rows of x.
template <typename T, typename Act, int Columns>
__device__ __forceinline__ void store_whole_sums(const SkinnyProblem& p, unsigned warp,
                                                 unsigned lane, unsigned first,
                                                 const float (&sums)[Columns / 2]) {
#pragma unroll
  for (int i = 0; i < Columns / 2; i += 2) {
    const unsigned m = warp * 16 + i / 2 % 2 * 8 + lane / 4, n = first + i / 4 * 8 + lane % 4 * 2;
    if (m >= p.m || n >= p.n) continue;
    if (p.n % 2 == 0) {
      Pack<T, 2> pack;
      pack.value[0] = finished<T, Act>(p, 0, m, n, sums[i]);
      pack.value[1] = finished<T, Act>(p, 0, m, n + 1, sums[i + 1]);
      *reinterpret_cast<Pack<T, 2>*>(static_cast<T*>(p.out) + static_cast<UInt64>(m) * p.n + n) =
          pack;
    } else {
      finish_sum<T, Act>(p, 0, m, n, sums[i]);
      if (n + 1 < p.n) finish_sum<T, Act>(p, 0, m, n + 1, sums[i + 1]);
    }
  }
}

/// 128 threads multiply, 32 copy. A block has `Columns` rows of the weights and all rows of x, at
/// most 64.
template <typename T, typename Act, int Columns, int Stages>
__global__ void __launch_bounds__(160)
    skinny_whole(const __grid_constant__ TensorMap map_weights,
                 const __grid_constant__ TensorMap map_x, const __grid_constant__ SkinnyProblem p) {
  using Of = WholeStages<Columns, Stages>;
  extern __shared__ __align__(1024) unsigned char memory[];
  const Of shared(memory);
  const unsigned warp = __shfl_sync(~0u, threadIdx.x / 32, 0), lane = threadIdx.x % 32;
  const unsigned first = blockIdx.x * Columns;
  const int chunks = static_cast<int>((p.k + Of::kDepth - 1) / Of::kDepth);
  if (threadIdx.x == 0) {
    prefetch(map_weights);
    prefetch(map_x);
    for (int stage = 0; stage < Stages; ++stage) {
      shared.full[stage].init(1);
      shared.empty[stage].init(4);
    }
    Mbarrier::publish();
  } else if (threadIdx.x == 128) {
    for (int i = 0; i < min(static_cast<int>(p.ahead), chunks); ++i) {
      fetch_box(map_weights, {i * Of::kDepth, static_cast<int>(first), 0, 0});
    }
  }
  __syncthreads();
  wait_for_previous();
  Ring<Stages> ring;
  if (warp < 4) {
    float sums[Columns / 2];
    multiply_stages<T, Columns>(shared, lane, chunks, ring, sums);
    store_whole_sums<T, Act, Columns>(p, warp, lane, first, sums);
  } else if (lane == 0) {
    load_stages(shared, map_weights, map_x, first, chunks, ring);
  }
}
