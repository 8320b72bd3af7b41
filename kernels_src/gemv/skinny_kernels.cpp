// Which instance of which kernel a product with few rows launches.
#include "kernels_src/gemv/skinny_kernels.h"

#include "base/format.h"
#include "kernels_src/gemv/skinny.cu.h"
#include "kernels_src/gemv/skinny_bytes.cu.h"
#include "kernels_src/gemv/skinny_columns.cu.h"
#include "kernels_src/gemv/skinny_row.cu.h"
#include "kernels_src/gemv/skinny_staged.cu.h"
#include "kernels_src/gemv/skinny_wgmma.cu.h"

#include <string>

namespace kernwright::kernels {
namespace {

const Family& skinny_family() {
  static const auto& made = *new Family("skinny.cu", text::skinny_cu);
  return made;
}

const Family& skinny_column_family() {
  static const auto& made = *new Family("skinny_columns.cu", text::skinny_columns_cu);
  return made;
}

const Family& skinny_staged_family() {
  static const auto& made = *new Family("skinny_staged.cu", text::skinny_staged_cu);
  return made;
}

const Family& skinny_row_family() {
  static const auto& made = *new Family("skinny_row.cu", text::skinny_row_cu);
  return made;
}

const Family& skinny_wgmma_family() {
  static const auto& made = *new Family("skinny_wgmma.cu", text::skinny_wgmma_cu);
  return made;
}

const Family& skinny_byte_family() {
  static const auto& made = *new Family("skinny_bytes.cu", text::skinny_bytes_cu);
  return made;
}

const char* skinny_activation(const SkinnyInstance& instance) {
  return instance.activation ? activation_type(*instance.activation) : "Identity";
}

InstanceKey skinny_key(const SkinnyInstance& instance, SkinnyKernel which) {
  const int activation = instance.activation ? static_cast<int>(*instance.activation) + 1 : 0;
  const SkinnyPlan& plan = instance.plan;
  return InstanceKey()
      .add(which, 4)
      .type(instance.shape.x_type)
      .type(instance.shape.weight_type)
      .add(activation, 5)
      .add(plan.warps, 6)
      .add(plan.rows, 6)
      .add(plan.columns, 6)
      .add(plan.unroll, 5)
      .add(plan.hint, 2)
      .add(plan.width, 5)
      .add(plan.stages, 5)
      .add(which == SkinnyKernel::wgmma ? instance.shape.by_columns : plan.clustered, 1);
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

const LazyKernel& skinny_tiles_kernel(const SkinnyInstance& instance) {
  const SkinnyPlan& plan = instance.plan;
  return skinny_family().instance(skinny_key(instance, SkinnyKernel::tiles), [&] {
    return format("skinny_tiles<{}, {}, {}, {}, {}, {}, {}, {}>",
                  device_type(instance.shape.x_type), skinny_weights_format(instance.shape),
                  skinny_activation(instance), plan.warps, plan.rows, plan.columns, plan.unroll,
                  plan.hint);
  });
}

const LazyKernel& skinny_dot_kernel(const SkinnyInstance& instance) {
  const SkinnyPlan& plan = instance.plan;
  return skinny_family().instance(skinny_key(instance, SkinnyKernel::dot), [&] {
    return format("skinny_dot<{}, {}, {}, {}, {}, {}, {}, {}, {}>",
                  device_type(instance.shape.x_type), device_type(instance.shape.weight_type),
                  skinny_activation(instance), plan.width, plan.columns, plan.rows, plan.unroll,
                  plan.warps, plan.hint);
  });
}

const LazyKernel& skinny_shifted_kernel(const SkinnyInstance& instance) {
  const SkinnyPlan& plan = instance.plan;
  return skinny_family().instance(skinny_key(instance, SkinnyKernel::shifted), [&] {
    return format("skinny_shifted<{}, {}, {}, {}, {}>", device_type(instance.shape.x_type),
                  skinny_activation(instance), plan.columns, plan.rows, plan.warps);
  });
}

const LazyKernel& skinny_column_tiles_kernel(const SkinnyInstance& instance) {
  const SkinnyPlan& plan = instance.plan;
  return skinny_column_family().instance(skinny_key(instance, SkinnyKernel::column_tiles), [&] {
    return format("skinny_column_tiles<{}, {}, {}, {}, {}, {}>", device_type(instance.shape.x_type),
                  skinny_activation(instance), plan.warps, plan.columns, plan.unroll, plan.hint);
  });
}

const LazyKernel& skinny_columns_kernel(const SkinnyInstance& instance) {
  const SkinnyPlan& plan = instance.plan;
  return skinny_column_family().instance(skinny_key(instance, SkinnyKernel::columns), [&] {
    return format("skinny_columns<{}, {}, {}, {}, {}, {}, {}>", device_type(instance.shape.x_type),
                  device_type(instance.shape.weight_type), skinny_activation(instance), plan.width,
                  plan.columns, plan.unroll, plan.warps);
  });
}

const LazyKernel& skinny_staged_kernel(const SkinnyInstance& instance) {
  const SkinnyPlan& plan = instance.plan;
  return skinny_staged_family().instance(skinny_key(instance, SkinnyKernel::staged), [&] {
    return format("skinny_staged<{}, {}, {}, {}, {}, {}, {}, {}>",
                  device_type(instance.shape.x_type), skinny_weights_format(instance.shape),
                  skinny_activation(instance), plan.warps, plan.rows, plan.columns, plan.unroll,
                  plan.clustered);
  });
}

const LazyKernel& skinny_wgmma_kernel(const SkinnyInstance& instance) {
  const SkinnyPlan& plan = instance.plan;
  return skinny_wgmma_family().instance(skinny_key(instance, SkinnyKernel::wgmma), [&] {
    return format("skinny_wgmma<{}, {}, {}, {}, {}, {}>", device_type(instance.shape.x_type),
                  skinny_activation(instance), plan.warps, plan.columns, plan.stages,
                  instance.shape.by_columns);
  });
}

const LazyKernel& skinny_byte_kernel(const SkinnyInstance& instance) {
  const SkinnyPlan& plan = instance.plan;
  return skinny_byte_family().instance(skinny_key(instance, SkinnyKernel::bytes), [&] {
    return format("skinny_bytes<{}, {}, {}, {}, {}, {}, {}>", device_type(instance.shape.x_type),
                  device_type(instance.shape.weight_type), skinny_activation(instance), plan.warps,
                  plan.unroll, plan.columns, plan.stages);
  });
}

const LazyKernel& skinny_row_kernel(const SkinnyInstance& instance) {
  const SkinnyPlan& plan = instance.plan;
  return skinny_row_family().instance(skinny_key(instance, SkinnyKernel::row), [&] {
    return format("skinny_row<{}, {}, {}, {}, {}>", device_type(instance.shape.x_type),
                  device_type(instance.shape.weight_type), skinny_activation(instance), plan.warps,
                  plan.unroll);
  });
}

}  // namespace

const LazyKernel& skinny_kernel(const SkinnyInstance& instance) {
  switch (instance.plan.kernel) {
    case SkinnyKernel::tiles:
      return skinny_tiles_kernel(instance);
    case SkinnyKernel::column_tiles:
      return skinny_column_tiles_kernel(instance);
    case SkinnyKernel::columns:
      return skinny_columns_kernel(instance);
    case SkinnyKernel::staged:
      return skinny_staged_kernel(instance);
    case SkinnyKernel::wgmma:
      return skinny_wgmma_kernel(instance);
    case SkinnyKernel::bytes:
      return skinny_byte_kernel(instance);
    case SkinnyKernel::row:
      return skinny_row_kernel(instance);
    case SkinnyKernel::shifted:
      return skinny_shifted_kernel(instance);
    default:
      return skinny_dot_kernel(instance);
  }
}

const LazyKernel& skinny_splits_kernel(const SkinnyInstance& instance) {
  SkinnyInstance plain;
  plain.shape.x_type = instance.shape.x_type;
  plain.activation = instance.activation;
  plain.plan.hint = 0;
  return skinny_family().instance(skinny_key(plain, SkinnyKernel::chosen), [&] {
    return format("add_splits<{}, {}>", device_type(instance.shape.x_type),
                  skinny_activation(instance));
  });
}

}  // namespace kernwright::kernels
