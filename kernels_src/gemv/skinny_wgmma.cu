// Products with some rows on Hopper: the weights are the rows of products by warpgroups (wgmma), x
// their columns. One warp copies both by tensor maps; blocks of a cluster share k.
#include <kernwright/cluster_split_k.cuh>
#include <kernwright/product_stages.cuh>
#include <kernwright/wgmma.cuh>

using namespace kernwright;

/// Strides of batches in the maps: 0 for operands common to all.
struct SkinnyTiles {
  int weights_batch, x_batch;
};

/// Shared memory of a block: stages of 128 bytes of each row of the weights and of x, two mbarriers
/// for each stage. If the block sends accumulators, a receiving buffer and a barrier follow the
/// stages; else accumulators overwrite the stages, a column behind another.
template <int Warps, int ColTiles, int Stages>
struct Tiles {
  static constexpr int kRows = Warps * 16, kColumns = ColTiles * 8, kDepth = 64, kTeams = 1;
  static constexpr bool kSends = ColTiles <= 4;              // else they reuse the stages
  static constexpr int kBytes = (kRows + kColumns) * kLine;  // of a stage
  static constexpr int kPitch = kRows + 4;                   // of accumulators
  static constexpr int kSumBytes = kSends ? 0 : kColumns * kPitch * 4;
  static constexpr int kData = Stages * kBytes > kSumBytes ? Stages* kBytes : kSumBytes;
  unsigned char *base, *received;
  Mbarrier *full, *empty, *all_received;

  __device__ Tiles(unsigned char* at, unsigned splits)
      : base(at),
        received(at + kData),
        full(reinterpret_cast<Mbarrier*>(received +
                                         (kSends ? EpilogueOwners<Tiles>{splits}.bytes() : 0))),
        empty(full + Stages),
        all_received(empty + Stages) {}
  __device__ unsigned char* weights(int stage) const { return base + stage * kBytes; }
  __device__ unsigned char* x(int stage) const { return weights(stage) + kRows * kLine; }
  __device__ float* accumulators() const { return reinterpret_cast<float*>(base); }
};

/// Stages `begin` to `end` of k. By one thread. kAcross: weights have their neighbours across k.
template <bool kAcross, typename TilesType, int Stages>
__device__ __forceinline__ void load_stages(const TilesType& shared, const TensorMap& map_weights,
                                            const TensorMap& map_x, int first, int begin, int end,
                                            int weights_at, int x_at, Ring<Stages>& ring) {
  for (int chunk = begin; chunk < end; ++chunk, ring.advance()) {
    Mbarrier& full = shared.full[ring.stage];
    shared.empty[ring.stage].wait(ring.parity ^ 1);
    full.arrive_expecting(TilesType::kBytes);
    const int k = chunk * TilesType::kDepth;
    unsigned char* const weights = shared.weights(ring.stage);
    if constexpr (kAcross) {
#pragma unroll
      for (int i = 0; i < TilesType::kRows / 64; ++i) {
        tma_load(weights + i * kPart, map_weights, {first + i * 64, k, weights_at, 0}, full);
      }
    } else {
      tma_load(weights, map_weights, {k, first, weights_at, 0}, full);
    }
    tma_load(shared.x(ring.stage), map_x, {k, 0, x_at, 0}, full);
  }
}

/// Weights of the stages `begin` to `end` of k to the second level of cache. By one thread.
template <bool kAcross, typename TilesType>
__device__ __forceinline__ void prefetch_stages(const TensorMap& map_weights, int first, int begin,
                                                int end, int weights_at) {
  for (int chunk = begin; chunk < end; ++chunk) {
    const int k = chunk * TilesType::kDepth;
    if constexpr (kAcross) {
#pragma unroll
      for (int i = 0; i < TilesType::kRows / 64; ++i) {
        tma_prefetch(map_weights, {first + i * 64, k, weights_at, 0});
      }
    } else {
      tma_prefetch(map_weights, {k, first, weights_at, 0});
    }
  }
}

/// The accumulators of a warpgroup's 64 rows, stage after stage: one's products run while the next
/// one's begin.
template <typename T, bool kAcross, typename TilesType, int Stages>
__device__ __forceinline__ void multiply_stages(const TilesType& shared, int group, int lane,
                                                int chunks, Ring<Stages>& ring,
                                                float (&accumulators)[TilesType::kColumns / 2]) {
  using Step = Products<T, TilesType::kColumns, kAcross, false>;
  constexpr unsigned kAlong = kAcross ? 2048 : 32;
  int previous = 0;
#pragma unroll
  for (float& sum : accumulators) sum = 0;
  for (int chunk = 0; chunk < chunks; ++chunk) {
    shared.full[ring.stage].wait(ring.parity);
    const unsigned a = shared_address(shared.weights(ring.stage)) + group * kPart;
    const unsigned b = shared_address(shared.x(ring.stage));
    begin_products();
#pragma unroll
    for (int k = 0; k < TilesType::kDepth / 16; ++k) {
      Step::add(accumulators, matrix_descriptor(a + k * kAlong, kPart),
                matrix_descriptor(b + k * 32, kPart), 1);
    }
    commit_products();
    wait_for_products<1>();
    if (chunk > 0) give_back<1>(shared.empty[previous], lane);
    previous = ring.stage;
    ring.advance();
  }
  wait_for_products<0>();
  settle(accumulators);
  if (chunks > 0) give_back<1>(shared.empty[previous], lane);
}

/// Warps * 32 threads multiply, 32 copy. A block has 16 rows of the weights for each warp and all
/// rows of x, at most 8 * ColTiles. The splits are one cluster.
template <typename T, typename Act, int Warps, int ColTiles, int Stages, bool kAcross>
__global__ void __launch_bounds__(Warps * 32 + 32)
    skinny_wgmma(const __grid_constant__ TensorMap map_weights,
                 const __grid_constant__ TensorMap map_x, const __grid_constant__ SkinnyProblem p,
                 const SkinnyTiles batches) {
  using TilesType = Tiles<Warps, ColTiles, Stages>;
  extern __shared__ __align__(1024) unsigned char memory[];
  const TilesType shared(memory, p.splits);
  const int warp = __shfl_sync(~0u, static_cast<int>(threadIdx.x / 32), 0);
  const int lane = threadIdx.x % 32, first = blockIdx.x * TilesType::kRows;
  const int chunks = (p.k + TilesType::kDepth - 1) / TilesType::kDepth;
  const int each = (chunks + p.splits - 1) / p.splits;
  const int begin = min(static_cast<int>(blockIdx.y) * each, chunks);
  const int end = min(begin + each, chunks);
  if (threadIdx.x == 0) {
    prefetch(map_weights);
    prefetch(map_x);
    for (int stage = 0; stage < Stages; ++stage) {
      shared.full[stage].init(1);
      shared.empty[stage].init(Warps);
    }
    if constexpr (TilesType::kSends) shared.all_received->init(1);
    Mbarrier::publish();
    if constexpr (TilesType::kSends) expect_accumulators(shared, p.splits, blockIdx.y);
  } else if (threadIdx.x == Warps * 32) {
    prefetch_stages<kAcross, TilesType>(map_weights, first, begin,
                                        min(begin + static_cast<int>(p.ahead), end),
                                        static_cast<int>(blockIdx.z) * batches.weights_batch);
  }
  if (TilesType::kSends && p.splits > 1) arrive_in_cluster();
  __syncthreads();
  if (!TilesType::kSends) pdl_launch_dependents();
  pdl_wait();
  Ring<Stages> ring;
  // Now, while the first stages come: it divides.
  const WarpPlace place = place_warp(shared, p.splits, warp, lane);
  unsigned parity = 0;
  for (UInt64 batch = blockIdx.z; batch < p.batches; batch += gridDim.z, parity ^= 1) {
    const int at = static_cast<int>(batch);
    const bool last = batch + gridDim.z >= p.batches;
    float accumulators[TilesType::kColumns / 2];
    if (warp < Warps) {
      multiply_stages<T, kAcross>(shared, warp / 4, lane, end - begin, ring, accumulators);
    } else if (lane == 0) {
      load_stages<kAcross>(shared, map_weights, map_x, first, begin, end,
                           at * batches.weights_batch, at * batches.x_batch, ring);
      // Earlier, what it fetches would delay these loads.
      if (TilesType::kSends && last) pdl_launch_dependents();
    }
    __syncwarp();
    if constexpr (TilesType::kSends) {
      if (p.splits > 1) wait_for_cluster();
      if (warp < Warps &&
          reduce_warp_split_k(shared, place, p.splits, blockIdx.y, parity, accumulators)) {
        finish_warp<T, Act, TilesType>(p, batch, first + warp * 16, lane, accumulators);
      }
      if (last) break;
      __syncthreads();  // all have added what was sent
      if (threadIdx.x == 0) expect_accumulators(shared, p.splits, blockIdx.y);
      if (p.splits > 1) release_to_cluster();
    } else {
      __syncthreads();  // all have read the stages
      if (warp < Warps) spread_warp(shared, warp, lane, accumulators);
      finish_cluster<T, Act>(p, batch, 0, first, shared);
      if (last) break;
      show_to_copies();  // the next batch's TMA tiles come to the place of the accumulators
      cluster_sync();
    }
  }
  if (!TilesType::kSends) leave_cluster(p.splits);
}
