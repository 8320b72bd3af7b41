// The instance of a kernel that a product with few rows launches.
#include "kernels_src/gemv/skinny_kernels.h"

#include "base/format.h"
#include "kernels_src/gemv/skinny.cu.h"
#include "kernels_src/gemv/skinny_bytes.cu.h"
#include "kernels_src/gemv/skinny_columns.cu.h"
#include "kernels_src/gemv/skinny_row.cu.h"
#include "kernels_src/gemv/skinny_staged.cu.h"
#include "kernels_src/gemv/skinny_wgmma.cu.h"

#include <string>
#include <utility>

namespace kernwright::kernels {
namespace {

/// The text that has the kernel; skinny.cu also has the kernel that adds splits.
const Family& skinny_family(SkinnyKernel kernel) {
  switch (kernel) {
    case SkinnyKernel::column_tiles:
    case SkinnyKernel::columns: {
      static const auto& made = *new Family("skinny_columns.cu", text::skinny_columns_cu);
      return made;
    }
    case SkinnyKernel::staged: {
      static const auto& made = *new Family("skinny_staged.cu", text::skinny_staged_cu);
      return made;
    }
    case SkinnyKernel::wgmma: {
      static const auto& made = *new Family("skinny_wgmma.cu", text::skinny_wgmma_cu);
      return made;
    }
    case SkinnyKernel::bytes: {
      static const auto& made = *new Family("skinny_bytes.cu", text::skinny_bytes_cu);
      return made;
    }
    case SkinnyKernel::row: {
      static const auto& made = *new Family("skinny_row.cu", text::skinny_row_cu);
      return made;
    }
    default: {
      static const auto& made = *new Family("skinny.cu", text::skinny_cu);
      return made;
    }
  }
}

InstanceKey skinny_key(const SkinnyInstance& instance) {
  const SkinnyPlan& plan = instance.plan;
  const bool by_columns = plan.kernel == SkinnyKernel::wgmma && instance.shape.by_columns;
  const bool clustered = plan.kernel != SkinnyKernel::wgmma && plan.clustered;
  const std::pair<int, int> parts[] = {
      {static_cast<int>(plan.kernel), 4},
      {static_cast<int>(instance.shape.x_type), 5},
      {static_cast<int>(instance.shape.weight_type), 5},
      {instance.activation ? static_cast<int>(*instance.activation) + 1 : 0, 5},
      {plan.warps, 6},
      {plan.rows, 6},
      {plan.columns, 6},
      {plan.unroll, 5},
      {plan.hint, 2},
      {plan.width, 5},
      {plan.stages, 5},
      {by_columns || clustered ? 1 : 0, 1},
      {instance.normed ? 1 : 0, 1},
      {instance.gated ? 1 : 0, 1}};
  InstanceKey key;
  for (const auto& [value, bits] : parts) key.add(value, bits);
  return key;
}

std::string skinny_weights_format(const SkinnyShape& shape) {
  const char* const x = device_type(shape.x_type);
  if (shape.weight_type == ScalarType::int8) return format("Int8Weights<{}>", x);
  if (shape.weight_type == ScalarType::float8_e4m3fn) return format("Float8Weights<{}>", x);
  if (shape.weight_type == ScalarType::float8_e5m2) {
    return format("Float8Weights<{}, Float8E5M2>", x);
  }
  return format("PlainWeights<{}>", x);
}

/// The name of the kernel with all template arguments.
std::string skinny_name(const SkinnyInstance& instance) {
  const SkinnyShape& shape = instance.shape;
  const SkinnyPlan& plan = instance.plan;
  const char *const x = device_type(shape.x_type), *const w = device_type(shape.weight_type);
  const char* act = instance.activation ? activation_traits(*instance.activation).type : "Same";
  if (instance.gated) act = activation_type(*instance.activation, shape.x_type);
  const char* const normed = instance.gated ? ", true, true" : instance.normed ? ", true" : "";
  switch (plan.kernel) {
    case SkinnyKernel::chosen:
      return format("add_splits<{}, {}>", x, act);
    case SkinnyKernel::tiles:
      return format("skinny_tiles<{}, {}, {}, {}, {}, {}, {}, {}>", x, skinny_weights_format(shape),
                    act, plan.warps, plan.rows, plan.columns, plan.unroll, plan.hint);
    case SkinnyKernel::column_tiles:
      return format("skinny_column_tiles<{}, {}, {}, {}, {}, {}>", x, act, plan.warps, plan.columns,
                    plan.unroll, plan.hint);
    case SkinnyKernel::columns:
      return format("skinny_columns<{}, {}, {}, {}, {}, {}, {}>", x, w, act, plan.width,
                    plan.columns, plan.unroll, plan.warps);
    case SkinnyKernel::staged:
      return format("skinny_staged<{}, {}, {}, {}, {}, {}, {}, {}, {}>", x,
                    skinny_weights_format(shape), act, plan.warps, plan.rows, plan.columns,
                    plan.unroll, plan.clustered,
                    plan.width * static_cast<int>(scalar_size(shape.weight_type)));
    case SkinnyKernel::wgmma:
      return format("skinny_wgmma<{}, {}, {}, {}, {}, {}>", x, act, plan.warps, plan.columns,
                    plan.stages, shape.by_columns);
    case SkinnyKernel::bytes:
      return format("skinny_bytes<{}, {}, {}, {}, {}, {}, {}>", x, w, act, plan.warps, plan.unroll,
                    plan.columns, plan.stages);
    case SkinnyKernel::row:
      return format("skinny_row<{}, {}, {}, {}, {}{}>", x, w, act, plan.warps, plan.unroll, normed);
    case SkinnyKernel::shifted:
      return format("skinny_shifted<{}, {}, {}, {}, {}>", x, act, plan.columns, plan.rows,
                    plan.warps);
    default:
      return format("skinny_dot<{}, {}, {}, {}, {}, {}, {}, {}, {}{}>", x, w, act, plan.width,
                    plan.columns, plan.rows, plan.unroll, plan.warps, plan.hint, normed);
  }
}

}  // namespace

const LazyKernel& skinny_kernel(const SkinnyInstance& instance) {
  return skinny_family(instance.plan.kernel).instance(skinny_key(instance), [&] {
    return skinny_name(instance);
  });
}

const LazyKernel& skinny_splits_kernel(const SkinnyInstance& instance) {
  SkinnyInstance adding;
  adding.shape.x_type = instance.shape.x_type;
  adding.activation = instance.activation;
  adding.plan.hint = 0;
  return skinny_kernel(adding);
}

}  // namespace kernwright::kernels
