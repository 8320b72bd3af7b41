// Matrix products of float8 whose sums leave the tensor cores' registers after every 128 elements:
// those keep about 14 bits (after DeepGEMM). With scales of blocks each part is multiplied by its
// own.
#include <kernwright/product_roles.cuh>

using namespace kernwright;

constexpr int kBlock = 128;  // elements and columns that share a scale

/// Scales of b, of kBlock columns by kBlock of the inner dimension; steps in elements.
struct BlockScales {
  const float* b;
  long long column_step, inner_step;
  int last_column;
};

/// The sums of one stage are made apart and then added. With kScales those of a have a tensor map,
/// whose rows of all steps lie behind each other.
template <typename Types, bool kScales>
struct Promoted : Types {
  using Of = typename Types::Of;
  static constexpr int kBytesBeside = kScales ? Of::kRows * 4 : 0;
  static constexpr bool kTwoBlocks = Of::kColumns > kBlock;
  static_assert(Of::kSums * (1 + Of::kWaves) <= 192 && Of::kColumns <= 192);

  const TensorMap& a_scales;
  const BlockScales& b_scales;

  __device__ __forceinline__ Promoted(const TensorMap& of_a, const BlockScales& of_b)
      : a_scales(of_a), b_scales(of_b) {}

  __device__ __forceinline__ void load_beside(unsigned char* target, int row, int step,
                                              Mbarrier& full) const {
    if constexpr (kScales) load_box(target, a_scales, {row, step, 0, 0}, full);
  }

  /// The scales of b for the tile's columns in a step.
  struct OfB {
    float value[2];
  };
  __device__ __forceinline__ OfB b_of(int column, int step) const {
    if constexpr (!kScales) return {};
    const float* at = b_scales.b + step * b_scales.inner_step;
    const int first = column / kBlock, second = min(first + 1, b_scales.last_column);
    return {at[first * b_scales.column_step], kTwoBlocks ? at[second * b_scales.column_step] : 0};
  }

  /// One wave's sums of a stage into those of all.
  __device__ __forceinline__ static void add(float (&sums)[Of::kSums],
                                             const float (&part)[Of::kSums], const float (&a)[2],
                                             const OfB& b, int blocks_end) {
#pragma unroll
    for (int i = 0; i < Of::kColumns / 8; ++i) {
      const float of_b = kTwoBlocks && i * 8 >= blocks_end ? b.value[1] : b.value[0];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        float& sum = sums[i * 4 + j];
        sum += kScales ? part[i * 4 + j] * (a[j / 2] * of_b) : part[i * 4 + j];
      }
    }
  }

  __device__ __forceinline__ void multiply_tile(const Shared<Promoted>& shared, const Part& of,
                                                int column, const Multiplier& self,
                                                Ring<Of::kStages>& ring,
                                                typename Types::Sums& sums) const {
    const int begin = of.begin, steps = of.steps;
    using Step = Products<typename Types::In, Of::kColumns, false, false>;
    const int row = Of::kAlternates ? 0 : self.group * Of::kGroupRows;
    const int blocks_end = kBlock - column % kBlock;
    OfB of_b = b_of(column, begin);
#pragma unroll
    for (int wave = 0; wave < Of::kWaves; ++wave) {
#pragma unroll
      for (float& sum : sums[wave]) sum = 0;
    }
    for (int step = 0; step < steps; ++step, ring.advance()) {
      shared.full[ring.stage].wait(ring.parity);
      const unsigned a = shared_address(shared.a(ring.stage)) + row * kLine;
      const unsigned b = shared_address(shared.b(ring.stage));
      float of_a[Of::kWaves][2] = {};
      if constexpr (kScales) {
        const float* scales = reinterpret_cast<const float*>(shared.more(ring.stage)) + row +
                              self.warp * kWarpRows + self.lane / 4;
#pragma unroll
        for (int wave = 0; wave < Of::kWaves; ++wave) {
          of_a[wave][0] = scales[wave * 64];
          of_a[wave][1] = scales[wave * 64 + 8];
        }
      }
      OfB next = of_b;
#pragma unroll
      for (int wave = 0; wave < Of::kWaves; ++wave) {
        float part[Of::kSums];
        begin_products();
#pragma unroll
        for (int k = 0; k < kLine / 32; ++k) {
          Step::add(part, matrix_descriptor(a + wave * kPart + k * 32, kPart),
                    matrix_descriptor(b + k * 32, kPart), k > 0);
        }
        commit_products();
        if (wave == 0 && step + 1 < steps) next = b_of(column, begin + step + 1);
        wait_for_products<0>();
        settle(part);
        if (wave + 1 == Of::kWaves) {
          __syncwarp();  // all have read their scales
          give_back<Of::kCluster>(shared.empty[ring.stage], self.lane);
          if (Of::kAlternates && step + 1 == steps && self.lane == 0) {
            shared.order[self.group ^ 1].arrive();
          }
        }
        add(sums[wave], part, of_a[wave], of_b, blocks_end);
      }
      of_b = next;
    }
  }
};

/// See run_product(); the inner dimension is dense in both operands. kScales: of blocks.
template <typename In, typename Out, typename Of, bool kScales, Store kStore, typename Finish>
__global__ void __launch_bounds__(Of::kThreads, 1)
    promoted_gemm(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
                  const __grid_constant__ TensorMap map_out,
                  const __grid_constant__ TensorMap map_scales, const BlockScales scales, void* out,
                  const ProductEpilogueValues with, const Problem of) {
  extern __shared__ __align__(1024) unsigned char storage[];
  using Types = ProductTypes<In, Out, Of, Layout<false, false>, kStore, Finish>;
  const Promoted<Types, kScales> work(map_scales, scales);
  run_product(work, storage, {map_a, map_b}, {map_out, out, with}, of);
}
