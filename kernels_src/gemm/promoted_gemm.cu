// Matrix products of float8 whose sums leave the tensor cores' registers after every 128 elements:
// those keep about 14 bits (after DeepGEMM). With scales of blocks each part is multiplied by its
// own.
#include <kernwright/product_roles.cuh>

using namespace kernwright;

constexpr int kBlock = 128;  // elements and columns that share a scale

/// Scales of b, of kBlock columns by kBlock of the inner dimension; steps in elements. Groups of
/// rows have a matrix each.
struct BlockScales {
  const float* b;
  long long column_step, inner_step, matrix_step;
  long long half;  // from those of a gated tile's first half to those of its second
  int last_column;
};

/// The sums of one stage are made apart and then added: of 64 rows and kWide columns at once, since
/// registers hold no more beside all sums. With kScales those of a have a tensor map, whose rows of
/// all steps lie behind each other. A box of them begins on 16 bytes: groups begin at any row, so
/// theirs have kSkews rows more.
template <typename Types, bool kScales, bool kGrouped>
struct Promoted : Types {
  using Of = typename Types::Of;
  static constexpr int kSkews = kGrouped ? 4 : 0;
  static constexpr int kBytesBeside = kScales ? (Of::kRows + kSkews) * 4 : 0;
  static constexpr bool kLeavesOut = false;
  static constexpr int kHalves = Of::kColumns > 192 ? 2 : 1, kWide = Of::kColumns / kHalves;
  static constexpr int kPartSums = kWide / 2, kParts = Of::kWaves * kHalves;
  static constexpr bool kGated = Types::Finish::kGated;
  static constexpr bool kTwoBlocks = Of::kColumns > kBlock || kGated;
  static_assert(Of::kSums * Of::kWaves + kPartSums <= 192);
  static_assert(kHalves == 1 || kWide == kBlock);  // each half has one scale of b
  static_assert(!kScales || !kGated || Of::kColumns % kBlock == 0);
  // Tiles of up to 192 columns begin where a block does, or in its middle.
  static_assert(Of::kColumns % (kBlock / 2) == 0);
  using Step = SumProducts<typename Types::In>;

  const TensorMap& a_scales;
  const BlockScales& b_scales;

  __device__ __forceinline__ Promoted(const TensorMap& of_a, const BlockScales& of_b)
      : a_scales(of_a), b_scales(of_b) {}

  __device__ __forceinline__ void load_beside(unsigned char* target, int row, int step,
                                              Mbarrier& full) const {
    if constexpr (kScales) load_box(target, a_scales, {row - skew_of(row), step, 0, 0}, full);
  }
  /// Rows between the begin of a box of scales and the row that it is for.
  __device__ __forceinline__ static int skew_of(int row) { return kGrouped ? row % 4 : 0; }

  /// The scales of b for the tile's columns in a step.
  struct OfB {
    float value[2];
  };
  __device__ __forceinline__ const float* b_at(int batch, int step) const {
    const float* at = b_scales.b + step * b_scales.inner_step;
    if constexpr (kGrouped) at += batch * b_scales.matrix_step;
    return at;
  }
  /// Of a cluster whose tiles lie beside each other the last ones may be behind all columns.
  __device__ __forceinline__ int block_of(int column) const {
    const int block = column / kBlock;
    return Of::kSharersOfA == 1 ? block : min(block, b_scales.last_column);
  }
  __device__ __forceinline__ OfB b_of(int batch, int column, int step) const {
    if constexpr (!kScales) return {};
    const float* at = b_at(batch, step);
    const int first = block_of(column), second = min(first + 1, b_scales.last_column);
    return {at[first * b_scales.column_step], kTwoBlocks ? at[second * b_scales.column_step] : 0};
  }

  /// Where they lie, step after step. An address that is made anew in each step delays the
  /// products; with 192 columns the place takes registers that delay them more.
  static constexpr bool kStepsPlace = kScales && Of::kColumns != 192;
  struct PlaceOfB {
    const float* at;
    long long apart;  // elements between both
    __device__ __forceinline__ OfB read() const { return {*at, kTwoBlocks ? at[apart] : 0}; }
  };
  __device__ __forceinline__ PlaceOfB place_of_b(int batch, int column, int step) const {
    if constexpr (!kStepsPlace) return {};
    const int first = block_of(column);
    const float* at = b_at(batch, step) + first * b_scales.column_step;
    if constexpr (kGated) return {at, b_scales.half};
    return {at, first < b_scales.last_column ? b_scales.column_step : 0};
  }
  __device__ __forceinline__ OfB next_of_b(PlaceOfB& place, int batch, int column, int step) const {
    if constexpr (!kStepsPlace) return b_of(batch, column, step);
    place.at += b_scales.inner_step;
    return place.read();
  }

  /// Adds the sums of a stage to those of all. The first kFirst columns have the first scale.
  template <int kFirst>
  __device__ __forceinline__ static void add(float* sums, const float (&part)[kPartSums],
                                             const float (&a)[2], float first, float second) {
    const float scales[2][2] = {{a[0] * first, a[1] * first}, {a[0] * second, a[1] * second}};
#pragma unroll
    for (int i = 0; i < kPartSums; ++i) {
      sums[i] += kScales ? part[i] * scales[i / 4 * 8 >= kFirst][i / 2 % 2] : part[i];
    }
  }

  /// Where a warpgroup's operands lie in the first stage: shared addresses in units of 16 bytes,
  /// which are the same in all lanes. The compiler keeps what is made of them in uniform registers.
  struct Operands {
    unsigned a, b;
  };
  __device__ __forceinline__ static unsigned long long descriptor(unsigned units) {
    return matrix_descriptor(0, kPart) + units;
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
                                                     int row, float (&of_a)[Of::kWaves][2]) {
    const float* scales = reinterpret_cast<const float*>(shared.more(stage)) + row;
#pragma unroll
    for (int wave = 0; wave < Of::kWaves; ++wave) {
      of_a[wave][0] = scales[wave * 64];
      of_a[wave][1] = scales[wave * 64 + 8];
    }
  }

  __device__ __forceinline__ void multiply_tile(const Shared<Promoted>& shared, const Part& of,
                                                int column, const Multiplier& self,
                                                Ring<Of::kStages>& ring,
                                                typename Types::Sums& sums) const {
    const int group = Of::kAlternates ? 0 : __shfl_sync(~0u, self.group, 0);
    const int row =
        group * Of::kGroupRows + self.warp * kWarpRows + self.lane / 4 + skew_of(of.top);
    const Operands at{(shared_address(shared.a(0)) + group * Of::kGroupRows * kLine) / 16,
                      shared_address(shared.b(0)) / 16};
    PlaceOfB place = place_of_b(of.batch, column, of.begin);
    OfB of_b = kStepsPlace ? place.read() : b_of(of.batch, column, of.begin);
#pragma unroll
    for (int wave = 0; wave < Of::kWaves; ++wave) {
#pragma unroll
      for (float& sum : sums[wave]) sum = 0;
    }
    bool ready = false;
#pragma unroll 1
    for (int step = 0; step < of.steps; ++step) {
      const bool last = step + 1 == of.steps;
      if (!ready) shared.full[ring.stage].wait(ring.parity);
      const int stage = ring.stage;
      float of_a[Of::kWaves][2] = {};
      if constexpr (kScales) read_scales(shared, stage, row, of_a);
      ring.advance();
      OfB next = of_b;
#pragma unroll
      for (int i = 0; i < kParts; ++i) {
        const int wave = i / kHalves, half = i % kHalves;
        const unsigned first = stage * (Of::kStageBytes / 16);
        multiply(at.a + first + wave * (kPart / 16), at.b + first + half * (kWide * kLine / 16));
        if (i == 0 && !last) next = next_of_b(place, of.batch, column, of.begin + step + 1);
        // Asked during the products: what is there needs no wait afterwards.
        if (i + 1 == kParts && !last) ready = shared.full[ring.stage].has_ended(ring.parity);
        wait_for_products<0>();
        float part[kPartSums];
        read_sums<0>(part);
        if (i + 1 == kParts) {
          give_back<Of::kCluster>(shared.empty[stage], self.lane);
          if (Of::kAlternates && last && self.lane == 0) shared.order[self.group ^ 1].arrive();
        }
        float* to = &sums[wave][half * kPartSums];
        const bool two = kGated ? kHalves == 1 : kWide > kBlock && column % kBlock != 0;
        if (kScales && two) {
          add<kBlock / 2>(to, part, of_a[wave], of_b.value[0], of_b.value[1]);
        } else {
          add<kBlock>(to, part, of_a[wave], of_b.value[half], of_b.value[1]);
        }
      }
      of_b = next;
    }
  }
};

/// See run_product(); the inner dimension is dense in both operands. kScales: of blocks. Given: a
/// Problem, or Grouped<Problem>, whose table follows in shared memory.
template <typename In, typename Out, typename Of, bool kScales, Store kStore, typename Finish,
          typename Given = Problem>
__global__ void __launch_bounds__(Of::kThreads, 1)
    promoted_gemm(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
                  const __grid_constant__ EdgeMaps edges, const __grid_constant__ TensorMap map_out,
                  const __grid_constant__ TensorMap map_scales, const BlockScales scales, void* out,
                  const ProductEpilogueValues with, const Given given) {
  extern __shared__ __align__(1024) unsigned char storage[];
  using Types = ProductTypes<In, Out, Of, Layout<false, false>, kStore, Finish>;
  using Work = Promoted<Types, kScales, ScheduleOf<Given>::Type::kGrouped>;
  declare_sums<1, Work::kPartSums>();
  const Work work(map_scales, scales);
  run_product(work, storage, {map_a, map_b, edges}, {map_out, out, with}, given);
}
