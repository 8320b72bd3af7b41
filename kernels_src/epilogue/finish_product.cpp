// Launches of finish_product.cu.
#include "kernels_src/epilogue/finish_product.h"

#include "base/format.h"
#include "kernels_src/epilogue/custom_epilogue.h"
#include "kernels_src/epilogue/epilogue_values.h"
#include "kernels_src/epilogue/finish_product.cu.h"
#include "kernels_src/family.h"
#include "kernels_src/reduce/reduce.h"

#include <algorithm>
#include <vector>

namespace kernwright::kernels {
namespace {

/// Elements that a thread finishes at a time.
int finish_width(const Array& result, const ProductEpilogue& epilogue) {
  const bool packs =
      result.shape().back() % 4 == 0 && (!epilogue.c || epilogue.c->address() % 16 == 0);
  return packs ? 4 : 1;
}

const LazyKernel& finish_kernel(const Array& result, const ProductEpilogue& epilogue) {
  const ScalarType type = result.type();
  const int width = finish_width(result, epilogue);
  static const auto& families = *new EpilogueFamilies("finish_product.cu", text::finish_product_cu);
  InstanceKey key;
  add_epilogue(key, epilogue);
  return families.family(epilogue).instance(key.type(type).add(width, 3), [&] {
    const char* activation = nullptr;
    if (epilogue.activation) activation = activation_traits(epilogue.activation->kind).type;
    return format("finish_product<{}, {}, {}>", device_type(type),
                  epilogue_type(epilogue, activation), width);
  });
}

}  // namespace

const LazyKernel* begin_finish(KernelsAhead& kernels, const Array& result,
                               const ProductEpilogue& epilogue) {
  if (result.type() == ScalarType::float64) return nullptr;
  const LazyKernel& kernel = finish_kernel(result, epilogue);
  kernels.begin(kernel, result.device());
  return &kernel;
}

void finish_partials(const Array& partials, const Array& result, const ProductEpilogue& epilogue,
                     int parts, const LazyKernel* kernel, KernelsAhead& kernels, const Stream& on) {
  if (kernel == nullptr) {
    const Array all = partials.reshape({parts, result.size()});
    write_reduction(result.reshape({result.size()}), all,
                    {.op = Reduction::sum, .axes = std::vector<int>{0}, .type = {}}, on);
    return partials.use_on(on);
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
  launch(kernels.on(*kernel, result.device()), config, partials.address(), result.address(),
         tile_epilogue_values(epilogue), size, columns, std::int32_t{parts});
  partials.use_on(on);
}

}  // namespace kernwright::kernels
