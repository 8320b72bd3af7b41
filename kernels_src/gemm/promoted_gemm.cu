// Matrix products of float8 with promoted accumulators: every 128 elements leave the tensor cores'
// accumulators, which keep about 14 bits (after DeepGEMM). With block scales each part is
// multiplied by its scale.
#include <kernwright/product_roles.cuh>

using namespace kernwright;

constexpr int kBlock = 128;  // elements and columns that share a scale

/// Scales of b, of kBlock columns by kBlock of the inner dimension; steps in elements. Groups of
/// rows have a matrix each.
struct BlockScales {
  const float* b;
  long long column_step, inner_step, matrix_step;
  long long half;  // from a gated tile's first half to its second
  int last_column;
};

/// The products of one stage are summed apart and then added to the accumulators: 64 rows and
/// kWide columns at once, since registers hold no more beside all accumulators. With kScales the
/// scales of a have a tensor map, whose rows of all steps lie behind each other. A TMA tile of
/// scales begins at a multiple of 16 bytes, and groups begin at any row: so TMA tiles of groups
/// have kSkews rows more.
template <typename Types, bool kScales, bool kGrouped>
struct Promoted : Types {
  using TileType = typename Types::Tile;
  static constexpr int kSkews = kGrouped ? 4 : 0;
  static constexpr int kBytesBeside = kScales ? (TileType::kRows + kSkews) * 4 : 0;
  static constexpr bool kLeavesOut = false;
  static constexpr bool kPlansAhead = true, kStagesAll = kScales;
  static constexpr int kStagedTiles = kScales ? TileType::kManyStagedTiles : TileType::kStagedTiles;
  static constexpr bool kTakesAlpha = kScales && kMultipliesByAlpha<typename Types::Finish>;
  static constexpr int kHalves = TileType::kColumns > 192 ? 2 : 1,
                       kWide = TileType::kColumns / kHalves;
  static constexpr int kPartAccumulators = kWide / 2, kParts = TileType::kWaves * kHalves;
  static constexpr bool kGated = Types::Finish::kGated;
  static constexpr bool kTwoBlocks = TileType::kColumns > kBlock || kGated;
  static_assert(TileType::kAccumulators * TileType::kWaves + kPartAccumulators <= 192);
  static_assert(kHalves == 1 || kWide == kBlock);  // each half has one scale of b
  static_assert(!kScales || !kGated || TileType::kColumns % kBlock == 0);
  // Tiles of up to 192 columns begin at a block of scales, or in the middle of one.
  static_assert(TileType::kColumns % (kBlock / 2) == 0);
  using Step = AccumulatorProducts<typename Types::In>;

  const TensorMap& a_scales;
  const BlockScales& b_scales;
  float alpha;

  __device__ __forceinline__ Promoted(const TensorMap& a_map, const BlockScales& b_blocks,
                                      float factor)
      : a_scales(a_map), b_scales(b_blocks), alpha(factor) {}

  __device__ __forceinline__ void load_beside(unsigned char* target, int row, int step,
                                              Mbarrier& full) const {
    if constexpr (kScales) tma_load(target, a_scales, {row - skew(row), step, 0, 0}, full);
  }
  /// Rows between the begin of a TMA tile of scales and the row that it is for.
  __device__ __forceinline__ static int skew(int row) { return kGrouped ? row % 4 : 0; }

  /// In a cluster whose tiles lie beside each other the last tiles may be behind all columns.
  __device__ __forceinline__ int scale_block(int column) const {
    const int block = column / kBlock;
    return TileType::kSharersA == 1 ? block : min(block, b_scales.last_column);
  }
  /// The scales of b for the tile's columns: of the first block and of the second one.
  struct ColumnScales {
    float value[2];
  };
  /// Where the scales of b lie in memory. Lanes keep the scales of 32 steps, loaded at once: a load
  /// in each step would come late.
  struct ScalePlace {
    const float* at;
    long long apart;  // elements between both
  };
  __device__ __forceinline__ ScalePlace scale_place(int batch, int column, int step) const {
    if constexpr (!kScales) return {};
    const int first = scale_block(column);
    const float* at = b_scales.b + step * b_scales.inner_step + first * b_scales.column_step;
    if constexpr (kGrouped) at += batch * b_scales.matrix_step;
    if constexpr (kGated) return {at, b_scales.half};
    return {at, first < b_scales.last_column ? b_scales.column_step : 0};
  }
  /// The scales of the lane's step behind `step`, or of the last step.
  __device__ __forceinline__ ColumnScales lane_scales(const ScalePlace& place, int step, int steps,
                                                      int lane) const {
    if constexpr (!kScales) return {};
    const float* at = place.at + min(step + lane, steps - 1) * b_scales.inner_step;
    return {*at, kTwoBlocks ? at[place.apart] : 0};
  }
  /// The scales of a step, times alpha. All lanes call it.
  __device__ __forceinline__ ColumnScales step_scales(const ColumnScales& lanes, int step) const {
    if constexpr (!kScales) return {};
    const float by = kTakesAlpha ? alpha : 1;
    return {__shfl_sync(~0u, lanes.value[0], step % 32) * by,
            kTwoBlocks ? __shfl_sync(~0u, lanes.value[1], step % 32) * by : 0};
  }

  /// Scales of b from tile to tile: the scales of the next tile are loaded during the last
  /// products.
  struct Kept {
    ColumnScales lanes;
    bool has;
  };

  __device__ __forceinline__ ColumnScales first_lane_scales(const PlannedTile& tile,
                                                            int lane) const {
    const int step = tile.deep.begin / kLine;
    return lane_scales(scale_place(tile.at.batch, tile.column, step), 0, tile.deep.steps, lane);
  }

  /// Adds the products of a stage to the accumulators. Each 64 columns have a scale of b. The
  /// middle 64 of 192 columns have the scale of the first or, where the tile begins in the middle
  /// of a block, of the last.
  __device__ __forceinline__ static void add(float* accumulators,
                                             const float (&part)[kPartAccumulators],
                                             const float (&a)[2], const ColumnScales& b, int half,
                                             bool in_middle) {
    constexpr int kUnits = kWide / (kBlock / 2);
    float scales[kUnits][2];
#pragma unroll
    for (int i = 0; i < kUnits; ++i) {
      const bool last = kTwoBlocks && i + 1 == kUnits;
      const bool second = kHalves == 2 ? half == 1 : last || (i > 0 && in_middle);
      const float b_scale = second ? b.value[1] : b.value[0];
      scales[i][0] = a[0] * b_scale;
      scales[i][1] = a[1] * b_scale;
    }
#pragma unroll
    for (int i = 0; i < kPartAccumulators; ++i) {
      accumulators[i] += kScales ? part[i] * scales[i / (kBlock / 4)][i / 2 % 2] : part[i];
    }
  }

  /// Where a warpgroup's operands lie in the first stage: low halves of matrix descriptors, equal
  /// in all lanes. The compiler keeps derived descriptors in uniform registers.
  struct Operands {
    unsigned a, b;
  };
  __device__ __forceinline__ static unsigned long long descriptor(unsigned low) {
    constexpr unsigned kHigh = 64u | 1u << 30;  // as matrix_descriptor()
    unsigned long long both;
    asm("mov.b64 %0, {%1, %2};" : "=l"(both) : "r"(low), "n"(kHigh));
    return both;
  }
  __device__ __forceinline__ static void multiply(unsigned a, unsigned b) {
    begin_products();
#pragma unroll
    for (int k = 0; k < kLine / 32; ++k) {
      Step::template add<kWide, 0, false, false>(descriptor(a + k * 2), descriptor(b + k * 2),
                                                 k > 0);
    }
    commit_products();
  }

  /// The scales of a thread's rows in a stage.
  __device__ __forceinline__ static void read_scales(const Shared<Promoted>& shared, int stage,
                                                     int row,
                                                     float (&row_scales)[TileType::kWaves][2]) {
    const float* scales = reinterpret_cast<const float*>(shared.more(stage)) + row;
#pragma unroll
    for (int wave = 0; wave < TileType::kWaves; ++wave) {
      row_scales[wave][0] = scales[wave * 64];
      row_scales[wave][1] = scales[wave * 64 + 8];
    }
  }

  /// plan() tells the next tile: that takes divisions, so it is asked behind products.
  template <typename Plan>
  __device__ __forceinline__ void multiply_tile(const Shared<Promoted>& shared, const Part& span,
                                                int column, const Multiplier& self,
                                                Ring<TileType::kStages>& ring,
                                                typename Types::Accumulators& accumulators,
                                                Kept& kept, const Plan& plan) const {
    const int group = TileType::kAlternates ? 0 : __shfl_sync(~0u, self.group, 0);
    const int row =
        group * TileType::kGroupRows + self.warp * kWarpRows + self.lane / 4 + skew(span.top);
    const unsigned base = shared_address(shared.a(0)) / 16 | kPart / 16 << 16;
    const Operands at{base + group * (TileType::kGroupRows * kLine / 16),
                      base + TileType::kBytesA / 16};
    const ScalePlace place = scale_place(span.batch, column, span.begin);
    if (!kept.has) kept.lanes = lane_scales(place, 0, span.steps, self.lane);
    PlannedTile next{};
    const bool in_middle = kWide > kBlock && column % kBlock != 0;
#pragma unroll
    for (int wave = 0; wave < TileType::kWaves; ++wave) {
#pragma unroll
      for (float& sum : accumulators[wave]) sum = 0;
    }
    bool ready = false;
#pragma unroll 1
    for (int step = 0; step < span.steps; ++step) {
      const bool last = step + 1 == span.steps;
      if (!ready) shared.full[ring.stage].wait(ring.parity);
      const int stage = ring.stage;
      float row_scales[TileType::kWaves][2] = {};
      if constexpr (kScales) read_scales(shared, stage, row, row_scales);
      __syncwarp();  // the scales have been read when one lane gives the stage back
      ring.advance();
      const unsigned empty = barrier_address(shared.empty[stage], self.lane);
      ColumnScales column_scales{};
#pragma unroll
      for (int i = 0; i < kParts; ++i) {
        const int wave = i / kHalves, half = i % kHalves;
        const unsigned first = stage * (TileType::kStageBytes / 16);
        multiply(at.a + first + wave * (kPart / 16), at.b + first + half * (kWide * kLine / 16));
        if (i == 0) column_scales = step_scales(kept.lanes, step);
        if (i + 1 == kParts) {
          if (step == 0) next = plan();
          if (last) {
            kept.has = next.exists;
            if (next.exists) kept.lanes = first_lane_scales(next, self.lane);
          } else if (step % 32 == 31) {
            kept.lanes = lane_scales(place, step + 1, span.steps, self.lane);
          }
        }
        // Asked during the products: what is there needs no wait afterwards.
        if (i + 1 == kParts && !last) ready = shared.full[ring.stage].has_ended(ring.parity);
        wait_for_products<0>();
        if (i + 1 == kParts) {
          arrive_at_place(empty, self.lane);
          if (TileType::kAlternates && last && self.lane == 0)
            shared.order[self.group ^ 1].arrive();
        }
        float part[kPartAccumulators];
        read_accumulators<0>(part);
        add(&accumulators[wave][half * kPartAccumulators], part, row_scales[wave], column_scales,
            half, in_middle);
      }
    }
  }

  /// The address of the barrier at which a lane gives a stage back, made before the products end.
  __device__ __forceinline__ static unsigned barrier_address(Mbarrier& empty, int lane) {
    const unsigned here = shared_address(&empty);
    return TileType::kCluster == 1 ? here : address_in_block(here, lane % TileType::kCluster);
  }
  __device__ __forceinline__ static void arrive_at_place(unsigned place, int lane) {
    if (lane < TileType::kCluster) {
      if constexpr (TileType::kCluster == 1) {
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(place) : "memory");
      } else {
        asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(place) : "memory");
      }
    }
  }
};

/// See run_product(); the inner dimension is dense in both operands. kScales: of blocks. Given: a
/// Problem, or Grouped<Problem>, whose table follows in shared memory.
template <typename In, typename Out, typename TileType, bool kScales, Store kStore, typename Finish,
          typename Given = Problem>
__global__ void __launch_bounds__(TileType::kThreads, 1)
    promoted_gemm(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
                  const __grid_constant__ EdgeMaps edges, const __grid_constant__ TensorMap map_out,
                  const __grid_constant__ TensorMap map_scales, const BlockScales scales, void* out,
                  const TileEpilogueValues epilogue, const Given given) {
  extern __shared__ __align__(1024) unsigned char storage[];
  using Types = ProductTypes<In, Out, TileType, Layout<false, false>, kStore, Finish>;
  using Work = Promoted<Types, kScales, ScheduleTraits<Given>::Type::kGrouped>;
  declare_accumulators<1, Work::kPartAccumulators>();
  const Work work(map_scales, scales, epilogue.alpha);
  run_product(work, storage, {map_a, map_b, edges}, {map_out, out, epilogue}, given,
              KERNWRIGHT_YIELD_WORDS);
}
