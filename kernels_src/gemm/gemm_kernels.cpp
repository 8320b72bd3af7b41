// Names and numbers of instances; the launch of finish_product.cu.
#include "kernels_src/gemm/gemm_kernels.h"

#include "base/format.h"
#include "kernels_src/family.h"
#include "kernels_src/gemm/custom_epilogue.h"
#include "kernels_src/gemm/finish_product.cu.h"
#include "kernels_src/gemm/fma/fma_gemm.cu.h"
#include "kernels_src/gemm/gemm.cu.h"
#include "kernels_src/gemm/mma/mma_gemm.cu.h"
#include "kernels_src/gemm/promoted_gemm.cu.h"
#include "kernels_src/reduce/reduce.h"

#include <algorithm>
#include <string>
#include <vector>

namespace kernwright::kernels {
namespace {

/// The function of sums, by itself or as a gate.
const std::optional<ActivationCall>& epilogue_activation(const GemmEpilogue& epilogue) {
  return epilogue.gate ? epilogue.gate : epilogue.activation;
}
/// "Epilogue<Silu, BFloat16, true>"
std::string epilogue_type(const GemmEpilogue& epilogue, const char* activation,
                          bool one_scale = false) {
  const char* bias = epilogue.bias ? device_type(epilogue.bias->type()) : "NoBias";
  if (epilogue.gate) return format("GatedEpilogue<{}, {}>", activation, bias);
  const std::string name =
      !epilogue.expression.empty()
          ? custom_epilogue_type(epilogue, bias)
          : format("Epilogue<{}, {}, {}>", epilogue.activation ? activation : "Same", bias,
                   epilogue.c ? "true" : "false");
  if (!epilogue.row_scales) return name;
  return format("Scaled<{}{}>", name, one_scale ? ", true" : "");
}
void add_epilogue(InstanceKey& key, const GemmEpilogue& epilogue) {
  const std::optional<ActivationCall>& call = epilogue_activation(epilogue);
  key.add(call ? static_cast<int>(call->kind) + 1 : 0, 6)
      .add(epilogue.gate.has_value(), 1)
      .add(epilogue.bias ? static_cast<int>(epilogue.bias->type()) + 1 : 0, 6)
      .add(epilogue.c.has_value(), 1)
      .add(epilogue.row_scales.has_value(), 1);
}

/// Elements that a thread finishes at a time.
int finish_width(const Array& result, const GemmEpilogue& epilogue) {
  const bool packs =
      result.shape().back() % 4 == 0 && (!epilogue.c || epilogue.c->address() % 16 == 0);
  return packs ? 4 : 1;
}

const LazyKernel& finish_kernel(const Array& result, const GemmEpilogue& epilogue) {
  const ScalarType type = result.type();
  const int width = finish_width(result, epilogue);
  static const auto& plain = *new Family("finish_product.cu", text::finish_product_cu);
  const Family& family =
      epilogue_family(plain, "finish_product.cu", text::finish_product_cu, epilogue);
  InstanceKey key;
  add_epilogue(key, epilogue);
  return family.instance(key.type(type).add(width, 3), [&] {
    const char* activation = nullptr;
    if (epilogue.activation) activation = activation_traits(epilogue.activation->kind).type;
    return format("finish_product<{}, {}, {}>", device_type(type),
                  epilogue_type(epilogue, activation), width);
  });
}

std::string short_epilogue_type(const GemmEpilogue& epilogue, bool one_scale = false) {
  const char* activation = nullptr;
  if (epilogue_activation(epilogue))
    activation = activation_traits(epilogue_activation(epilogue)->kind).tile_type;
  return epilogue_type(epilogue, activation, one_scale);
}
/// The last argument of a kernel's template; left out if it is the default.
const char* work_suffix(ProductWork work) {
  constexpr const char* kWorks[] = {"", ", Grouped<Problem>", ", GroupedInside<Problem>"};
  return kWorks[static_cast<int>(work)];
}
std::string gemm_name(const GemmInstance& instance, const GemmEpilogue& epilogue) {
  constexpr const char* kStores[] = {"kByCopies", "kByElements", "kDirect"};
  const GemmTile& tile = instance.tile;
  const char* in = device_type(instance.a);
  if (instance.a != instance.b)
    in = instance.a == ScalarType::float8_e4m3fn ? "MixedE4M3E5M2" : "MixedE5M2E4M3";
  const std::string sums = instance.sums == GemmSums::direct
                               ? format("Layout<{}, {}>", instance.turn_a, instance.turn_b)
                               : format("{}", instance.sums == GemmSums::block_scaled);
  return format("{}gemm<{}, {}, Tile<{}, {}, {}, {}, {}, {}{}>, {}, {}, {}{}>",
                instance.sums == GemmSums::direct ? "" : "promoted_", in, device_type(instance.out),
                tile.rows, tile.columns, tile.stages, tile.groups, tile.ping_pong, tile.cluster,
                tile.gathers ? ", true" : "", sums, kStores[static_cast<int>(instance.store)],
                short_epilogue_type(epilogue, has_one_scale(epilogue)), work_suffix(instance.work));
}
std::string mma_name(const MmaInstance& instance, const GemmEpilogue& epilogue) {
  const MmaTile& tile = instance.tile;
  return format("mma_gemm{}<{}, {}, Tile<{}, {}, {}, {}, {}>, Layout<{}, {}>, {}{}>",
                instance.block_scaled ? "_block_scaled" : "", device_type(instance.in),
                device_type(instance.out), tile.rows, tile.columns, tile.warp_rows(),
                tile.warp_columns(), tile.stages, instance.turn_a, instance.turn_b,
                short_epilogue_type(epilogue), work_suffix(instance.work));
}
std::string fma_name(const FmaInstance& instance, const GemmEpilogue& epilogue) {
  constexpr const char* kWays[] = {"kPacks", "kAcross", "kAlong"};
  const FmaTile& tile = instance.tile;
  const char* const in = device_type(instance.in);
  return format("fma_gemm<{}, {}, Tile<{}, {}, {}, {}, {}, {}, {}>, {}, {}, {}, {}{}>", in,
                device_type(instance.out), in, tile.rows, tile.columns, tile.thread_rows,
                tile.thread_columns, tile.depth, tile.stages,
                kWays[static_cast<int>(instance.way_a)], kWays[static_cast<int>(instance.way_b)],
                instance.whole, short_epilogue_type(epilogue), work_suffix(instance.work));
}

}  // namespace

bool has_one_scale(const GemmEpilogue& epilogue) {
  return epilogue.row_scales && epilogue.row_scales->size() == 1 &&
         epilogue.column_scales->size() == 1;
}

bool has_short_epilogue(const GemmEpilogue& epilogue) {
  const std::optional<ActivationCall>& call = epilogue_activation(epilogue);
  return !call || activation_traits(call->kind).is_short;
}

GemmEpilogueValues gemm_epilogue_values(const GemmEpilogue& epilogue) {
  GemmEpilogueValues values{.alpha = epilogue.alpha, .beta = epilogue.beta};
  if (epilogue.bias) values.bias = epilogue.bias->address();
  if (epilogue.c) values.c = epilogue.c->address();
  if (epilogue.row_scales) {
    const auto scale_step = [](const Array& scales) { return scales.size() == 1 ? 0 : 1; };
    values.row_scales = {epilogue.row_scales->address(), scale_step(*epilogue.row_scales)};
    values.column_scales = {epilogue.column_scales->address(), scale_step(*epilogue.column_scales)};
  }
  if (epilogue_activation(epilogue)) values.knobs = Knobs<float>(*epilogue_activation(epilogue));
  return values;
}

const LazyKernel& gemm_kernel(const GemmInstance& instance, const GemmEpilogue& epilogue) {
  static const auto& direct = *new Family("gemm.cu", text::gemm_cu);
  static const auto& promoted = *new Family("promoted_gemm.cu", text::promoted_gemm_cu);
  const Family& family =
      instance.sums == GemmSums::direct
          ? epilogue_family(direct, "gemm.cu", text::gemm_cu, epilogue)
          : epilogue_family(promoted, "promoted_gemm.cu", text::promoted_gemm_cu, epilogue);
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
      .add(instance.tile.gathers, 1);
  key.add(instance.turn_a, 1)
      .add(instance.turn_b, 1)
      .add(instance.store, 2)
      .add(instance.sums, 2)
      .type(instance.b);
  key.add(instance.work, 2).add(has_one_scale(epilogue), 1);
  return family.instance(key, [&] { return gemm_name(instance, epilogue); });
}

const LazyKernel& mma_kernel(const MmaInstance& instance, const GemmEpilogue& epilogue) {
  static const auto& plain = *new Family("mma_gemm.cu", text::mma_gemm_cu);
  const Family& family = epilogue_family(plain, "mma_gemm.cu", text::mma_gemm_cu, epilogue);
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
  return family.instance(key, [&] { return mma_name(instance, epilogue); });
}

const LazyKernel& fma_kernel(const FmaInstance& instance, const GemmEpilogue& epilogue) {
  static const auto& plain = *new Family("fma_gemm.cu", text::fma_gemm_cu);
  const Family& family = epilogue_family(plain, "fma_gemm.cu", text::fma_gemm_cu, epilogue);
  InstanceKey key;
  add_epilogue(key, epilogue);
  const FmaTile& tile = instance.tile;
  key.type(instance.in).type(instance.out).add(tile.rows / 32, 4).add(tile.columns / 32, 4);
  key.add(tile.thread_rows / 4, 3).add(tile.thread_columns / 4, 3).add(tile.depth / 8, 3);
  key.add(tile.stages, 3).add(instance.way_a, 2).add(instance.way_b, 2).add(instance.whole, 1);
  key.add(instance.work, 2);
  return family.instance(key, [&] { return fma_name(instance, epilogue); });
}

const LazyKernel* begin_finish(KernelsAhead& kernels, const Array& result,
                               const GemmEpilogue& epilogue) {
  if (result.type() == ScalarType::float64) return nullptr;
  const LazyKernel& kernel = finish_kernel(result, epilogue);
  kernels.begin(kernel, result.device());
  return &kernel;
}

void finish_sums(const Array& sums, const Array& result, const GemmEpilogue& epilogue, int parts,
                 const LazyKernel* kernel, KernelsAhead& kernels, const Stream& on) {
  if (kernel == nullptr) {
    const Array all = sums.reshape({parts, result.size()});
    write_reduction(result.reshape({result.size()}), all,
                    {.op = Reduction::sum, .axes = std::vector<int>{0}, .type = {}}, on);
    return sums.use_on(on);
  }
  constexpr unsigned kFinishThreads = 256;
  const auto columns = static_cast<std::int32_t>(result.shape().back());
  const std::int64_t size = result.size(),
                     blocks = (size + kFinishThreads * 4 - 1) / (kFinishThreads * 4);
  const LaunchConfig config{
      .grid = {static_cast<std::uint32_t>(std::min<std::int64_t>(blocks, 1 << 20))},
      .block = {kFinishThreads},
      .stream = on,
      .programmatic_dependent = overlaps_launches(result.device())};
  launch(kernels.on(*kernel, result.device()), config, sums.address(), result.address(),
         gemm_epilogue_values(epilogue), size, columns, std::int32_t{parts});
  sums.use_on(on);
}

}  // namespace kernwright::kernels
