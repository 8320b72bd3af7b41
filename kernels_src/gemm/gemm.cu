// Matrix products the Hopper way: one warp copies tiles by tensor maps into a ring of stages,
// warpgroups multiply them (wgmma) and finish their accumulators; blocks stay for many tiles.
#include <kernwright/product_roles.cuh>

using namespace kernwright;

/// Accumulators stay in registers throughout the mainloop. kRagged: k runs along both operands'
/// lines, a tile's part of k may be empty, and memory behind its end has elements of another group.
template <typename Types, bool kRagged>
struct Direct : Types {
  using TileType = typename Types::Tile;
  using Order = typename Types::Order;
  static constexpr int kBytesBeside = 0;
  static constexpr bool kLeavesOut = !kRagged;
  static constexpr bool kStays = kJustScales<typename Types::Finish> && Types::kStore != kDirect &&
                                 sizeof(typename Types::Out) == 2 &&
                                 !kIsWhole<typename Types::In> && TileType::kParts == 1 && !kRagged;
  // Products of few columns take as long as what is between them: descriptors are made by one
  // addition each.
  static constexpr bool kShort = TileType::kWaves == 1 && TileType::kColumns < 128;

  __device__ __forceinline__ void load_beside(unsigned char*, int, int, Mbarrier&) const {}

  /// The consumer warpgroups zero the lines of a stage from `first` on, in all parts of the stage.
  __device__ __forceinline__ static void clear_lines(unsigned char* stage, int first,
                                                     const Multiplier& self) {
    constexpr int kGroups = TileType::kAlternates ? 1 : TileType::kGroups;
    const int group = TileType::kAlternates ? 0 : self.group;
    const int thread = (group * 4 + self.warp) * 32 + self.lane, units = (64 - first) * 8;
    for (int i = thread; i < units; i += kGroups * 128) {
#pragma unroll
      for (int part = 0; part < TileType::kStageBytes / kPart; ++part) {
        *reinterpret_cast<uint4*>(stage + part * kPart + first * kLine + i * 16) = uint4{};
      }
    }
    show_to_copies();  // and to products
    const int barrier = TileType::kAlternates ? 1 + self.group : 1;
    asm volatile("bar.sync %0, %1;" ::"r"(barrier), "n"(kGroups * 128) : "memory");
  }

  /// One step's products of all waves, `a` and `b` the addresses of its operands.
  template <int kColumns, int kWave = 0>
  __device__ __forceinline__ static void multiply_step(unsigned a, unsigned b, int adds) {
    AccumulatorProducts<typename Types::In>::template add<kColumns, kWave, Order::kA, Order::kB>(
        matrix_descriptor(a, kPart), matrix_descriptor(b, kPart), adds);
    if constexpr (kWave + 1 < TileType::kWaves)
      multiply_step<kColumns, kWave + 1>(a + kPart, b, adds);
  }

  /// A stage's products of the tile's first kColumns, a and b its addresses.
  template <int kColumns>
  __device__ __forceinline__ static void multiply_stage(unsigned a, unsigned b, bool adds) {
    constexpr unsigned kAlongA = Order::kA ? 2048 : 32, kAlongB = Order::kB ? 2048 : 32;
    begin_products();
    if constexpr (kShort) {
      // The address of a cluster's block has the block's rank above the bits of a descriptor.
      const unsigned long long descriptor_a = matrix_descriptor(a, kPart),
                               descriptor_b = matrix_descriptor(b, kPart);
#pragma unroll
      for (int k = 0; k < kLine / 32; ++k) {
        AccumulatorProducts<typename Types::In>::template add<kColumns, 0, Order::kA, Order::kB>(
            further(descriptor_a, k * kAlongA), further(descriptor_b, k * kAlongB), adds || k > 0);
      }
    } else {
#pragma unroll
      for (int k = 0; k < kLine / 32; ++k) {
        multiply_step<kColumns>(a + k * kAlongA, b + k * kAlongB, adds || k > 0);
      }
    }
    commit_products();
  }

  /// The products of one stage run while the next ones are queued. At the edges of the result a
  /// warpgroup leaves out products outside: all of its rows, or all but the tile's first columns.
  __device__ __forceinline__ void multiply_tile(const Shared<Direct>& shared, const Part& part,
                                                int /*column*/, const Multiplier& self,
                                                Ring<TileType::kStages>& ring,
                                                typename Types::Accumulators& accumulators) const {
    const int steps = part.steps;
    constexpr bool kMayBeNarrow =
        kNarrow < TileType::kColumns && !kRagged && !Types::Finish::kGated;
    const bool some = kRagged || part.rows > 0;
    const bool narrow = kMayBeNarrow && part.columns <= kNarrow;
    const int group = kShort ? __shfl_sync(~0u, self.group, 0) : self.group;
    const unsigned rows = TileType::kAlternates ? 0 : group * TileType::kGroupRows * kLine;
    int previous = 0;
    // The products of two stages overlap, too.
    constexpr int kUnroll = TileType::kColumns * TileType::kWaves <= 64 ? 2 : 1;
#pragma unroll kUnroll
    for (int step = 0; step < steps; ++step) {
      shared.full[ring.stage].wait(ring.parity);
      if (kRagged && step + 1 == steps && part.last < 64) {
        clear_lines(shared.a(ring.stage), part.last, self);
      }
      const unsigned a = shared_address(shared.a(ring.stage)) + rows;
      const unsigned b = shared_address(shared.b(ring.stage));
      if (narrow && some) {
        multiply_stage<kMayBeNarrow ? kNarrow : TileType::kColumns>(a, b, step > 0);
      } else if (some) {
        multiply_stage<TileType::kColumns>(a, b, step > 0);
      }
      // The parity of a stage tells two rounds apart, no more: the next tile's come after this
      // one's.
      if (TileType::kAlternates && step + 1 == steps && self.lane == 0) {
        shared.order[self.group ^ 1].arrive();
      }
      wait_for_products<1>();
      if (step > 0) give_back<TileType::kCluster>(shared.empty[previous], self.lane);
      previous = ring.stage;
      ring.advance();
    }
    wait_for_products<0>();
    if constexpr (!kStays) read_waves(accumulators);
    if (!kRagged || steps > 0) {
      give_back<TileType::kCluster>(shared.empty[previous], self.lane);
      return;
    }
    if (TileType::kAlternates && self.lane == 0) shared.order[self.group ^ 1].arrive();
#pragma unroll
    for (int wave = 0; wave < TileType::kWaves; ++wave) {
#pragma unroll
      for (int i = 0; i < TileType::kAccumulators; ++i) accumulators[wave][i] = 0;
    }
  }
};

/// See run_product(). Operands of 16 bits may have either dimension dense, narrower ones a dense k.
/// Given: a Problem, or Grouped<Problem> or GroupedInside<Problem>, whose table follows in shared
/// memory.
template <typename In, typename Out, typename TileType, typename Order, Store kStore,
          typename Finish, typename Given = Problem>
__global__ void __launch_bounds__(TileType::kThreads, 1)
    gemm(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
         const __grid_constant__ EdgeMaps edges, const __grid_constant__ TensorMap map_out,
         void* out, const TileEpilogueValues epilogue, const Given given) {
  extern __shared__ __align__(1024) unsigned char storage[];
  constexpr bool kRagged = ScheduleTraits<Given>::Type::kInside;
  static_assert(!kRagged || (Order::kA && Order::kB));
  declare_accumulators<TileType::kWaves, TileType::kAccumulators>();
  const Direct<ProductTypes<In, Out, TileType, Order, kStore, Finish>, kRagged> work;
  run_product(work, storage, {map_a, map_b, edges}, {map_out, out, epilogue}, given,
              KERNWRIGHT_YIELD_WORDS);
}
