// Names and numbers of instances.
#include "kernels_src/gemm/gemm_kernels.h"

#include "base/format.h"
#include "kernels_src/epilogue/custom_epilogue.h"
#include "kernels_src/family.h"
#include "kernels_src/gemm/fma/fma_gemm.cu.h"
#include "kernels_src/gemm/gemm.cu.h"
#include "kernels_src/gemm/mma/mma_gemm.cu.h"
#include "kernels_src/gemm/promoted_gemm.cu.h"

#include <string>

namespace kernwright::kernels {
namespace {

/// The last argument of a kernel's template; left out if it is the default.
const char* work_suffix(ProductWork work) {
  constexpr const char* kWorks[] = {"", ", Grouped<Problem>", ", GroupedInside<Problem>"};
  return kWorks[static_cast<int>(work)];
}
std::string gemm_name(const GemmInstance& instance, const ProductEpilogue& epilogue) {
  constexpr const char* kStores[] = {"kByCopies", "kByElements", "kDirect"};
  const GemmTile& tile = instance.tile;
  const char* in = device_type(instance.a);
  if (instance.a != instance.b)
    in = instance.a == ScalarType::float8_e4m3fn ? "MixedE4M3E5M2" : "MixedE5M2E4M3";
  const std::string accumulation =
      instance.accumulation == GemmAccumulation::direct
          ? format("Layout<{}, {}>", instance.turn_a, instance.turn_b)
          : format("{}", instance.accumulation == GemmAccumulation::block_scaled);
  return format("{}gemm<{}, {}, Tile<{}, {}, {}, {}, {}, {}{}>, {}, {}, {}{}>",
                instance.accumulation == GemmAccumulation::direct ? "" : "promoted_", in,
                device_type(instance.out), tile.rows, tile.columns, tile.stages, tile.groups,
                tile.ping_pong, tile.cluster, tile.split_k ? ", true" : "", accumulation,
                kStores[static_cast<int>(instance.store)],
                tile_epilogue_type(epilogue, has_one_scale(epilogue)), work_suffix(instance.work));
}
std::string mma_name(const MmaInstance& instance, const ProductEpilogue& epilogue) {
  const MmaTile& tile = instance.tile;
  return format("mma_gemm{}<{}, {}, Tile<{}, {}, {}, {}, {}>, Layout<{}, {}>, {}{}>",
                instance.block_scaled ? "_block_scaled" : "", device_type(instance.in),
                device_type(instance.out), tile.rows, tile.columns, tile.warp_rows(),
                tile.warp_columns(), tile.stages, instance.turn_a, instance.turn_b,
                tile_epilogue_type(epilogue), work_suffix(instance.work));
}
std::string fma_name(const FmaInstance& instance, const ProductEpilogue& epilogue) {
  constexpr const char* kWays[] = {"kPacks", "kAcross", "kAlong"};
  const FmaTile& tile = instance.tile;
  const char* const in = device_type(instance.in);
  return format("fma_gemm<{}, {}, Tile<{}, {}, {}, {}, {}, {}, {}>, {}, {}, {}, {}{}>", in,
                device_type(instance.out), in, tile.rows, tile.columns, tile.thread_rows,
                tile.thread_columns, tile.depth, tile.stages,
                kWays[static_cast<int>(instance.way_a)], kWays[static_cast<int>(instance.way_b)],
                instance.whole, tile_epilogue_type(epilogue), work_suffix(instance.work));
}

}  // namespace

const LazyKernel& gemm_kernel(const GemmInstance& instance, const ProductEpilogue& epilogue) {
  static const auto& direct = *new EpilogueFamilies("gemm.cu", text::gemm_cu);
  static const auto& promoted = *new EpilogueFamilies("promoted_gemm.cu", text::promoted_gemm_cu);
  const auto& families = instance.accumulation == GemmAccumulation::direct ? direct : promoted;
  InstanceKey key;
  add_epilogue(key, epilogue);
  key.type(instance.a)
      .type(instance.out)
      .add(instance.tile.rows / 64, 3)
      .add(instance.tile.columns / 16, 5);
  key.add(instance.tile.stages, 6)
      .add(instance.tile.groups, 2)
      .add(instance.tile.ping_pong, 1)
      .add(instance.tile.cluster, 4)
      .add(instance.tile.split_k, 1);
  key.add(instance.turn_a, 1)
      .add(instance.turn_b, 1)
      .add(instance.store, 2)
      .add(instance.accumulation, 2)
      .type(instance.b);
  key.add(instance.work, 2).add(has_one_scale(epilogue), 1);
  return families.family(epilogue).instance(key, [&] { return gemm_name(instance, epilogue); });
}

const LazyKernel& mma_kernel(const MmaInstance& instance, const ProductEpilogue& epilogue) {
  static const auto& families = *new EpilogueFamilies("mma_gemm.cu", text::mma_gemm_cu);
  InstanceKey key;
  add_epilogue(key, epilogue);
  key.type(instance.in)
      .type(instance.out)
      .add(instance.tile.rows / 64, 3)
      .add(instance.tile.columns / 64, 3);
  key.add(instance.tile.stages, 4)
      .add(instance.turn_a, 1)
      .add(instance.turn_b, 1)
      .add(instance.block_scaled, 1);
  key.add(instance.work, 2);
  return families.family(epilogue).instance(key, [&] { return mma_name(instance, epilogue); });
}

const LazyKernel& fma_kernel(const FmaInstance& instance, const ProductEpilogue& epilogue) {
  static const auto& families = *new EpilogueFamilies("fma_gemm.cu", text::fma_gemm_cu);
  InstanceKey key;
  add_epilogue(key, epilogue);
  const FmaTile& tile = instance.tile;
  key.type(instance.in).type(instance.out).add(tile.rows / 32, 4).add(tile.columns / 32, 4);
  key.add(tile.thread_rows / 4, 3).add(tile.thread_columns / 4, 3).add(tile.depth / 8, 3);
  key.add(tile.stages, 3).add(instance.way_a, 2).add(instance.way_b, 2).add(instance.whole, 1);
  key.add(instance.work, 2);
  return families.family(epilogue).instance(key, [&] { return fma_name(instance, epilogue); });
}

}  // namespace kernwright::kernels
