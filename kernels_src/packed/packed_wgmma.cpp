// Launches of packed_wgmma.cu.
#include "kernels_src/packed/packed_wgmma.h"

#include "base/format.h"
#include "kernels_src/packed/packed_wgmma.cu.h"

#include <algorithm>
#include <string>
#include <vector>

namespace kernwright::kernels {
namespace {

const Family& packed_wgmma_family() {
  static const auto& made = *new Family("packed_wgmma.cu", text::packed_wgmma_cu);
  return made;
}

int packed_run(const PackedWeights& w) {
  return w.format == PackedFormat::q6_k || w.format == PackedFormat::nvfp4 ? 4 : 8;
}

/// Bytes of a row of x and a unit of two blocks in the order of the kernel.
std::int64_t packed_column_bytes(const PackedWeights& w) {
  return has_packed_minima(w) ? 576 : 512;
}

/// A different number for each kernel, and for the one in front of it that arranges x.
std::uint64_t packed_wgmma_key(const PackedLinearCall& call, const SkinnyPlan& plan,
                               bool arranges) {
  return packed_product_key(call, plan)
      .add(packed_key(call.weights), kPackedKeyBits)
      .add(arranges, 1);
}

std::string packed_wgmma_name(const PackedLinearCall& call, const SkinnyPlan& plan) {
  return format("packed_wgmma<{}, {}, {}, {}, {}, {}, {}>", device_type(call.x.type()),
                packed_device_format(call.weights, call.x.type()), packed_activation(call),
                plan.warps, plan.columns, plan.stages, plan.unroll);
}

}  // namespace

bool has_packed_minima(const PackedWeights& w) {
  return w.format == PackedFormat::q4_k || w.format == PackedFormat::q5_k;
}

const char* packed_activation(const PackedLinearCall& call) {
  return call.activation ? activation_type(call.activation->kind) : "Identity";
}

InstanceKey packed_product_key(const PackedLinearCall& call, const SkinnyPlan& plan) {
  return InstanceKey()
      .type(call.x.type())
      .add(call.activation ? static_cast<int>(call.activation->kind) + 1 : 0, 5)
      .add(plan.warps, 6)
      .add(plan.rows, 3)
      .add(plan.columns, 5)
      .add(plan.unroll, 4)
      .add(std::max(0, plan.stages), 4);
}

std::int64_t packed_wgmma_shared(const PackedWeights& w, const SkinnyPlan& plan) {
  const std::int64_t columns = std::int64_t{8} * plan.columns;
  const std::int64_t stage =
      (columns * packed_column_bytes(w) + plan.warps * packed_stage_bytes(w) + 1023) / 1024 * 1024;
  const std::int64_t sums = plan.unroll * columns * (16 * plan.warps + 4) * 4;
  const std::int64_t of_scales = w.parts[4] ? 1024 : 0;
  const std::int64_t table = of_scales + (w.format == PackedFormat::nf4 ? kPairTableBytes : 0);
  return std::max(plan.stages * stage, sums) + plan.stages * 16 + 16 + table;
}

Array arrange_packed_columns(const PackedLinearCall& call, const SkinnyProblem& problem,
                             const SkinnyPlan& plan, const Stream& on) {
  const PackedWeights& w = call.weights;
  const int run = packed_run(w), columns = 8 * plan.columns;
  const bool sums = has_packed_minima(w);
  const std::int64_t units = (w.k + 255) / 256;
  const std::int64_t rows = (problem.m + columns - 1) / columns * columns;
  Device& device = call.x.device();
  Array made = Array::empty(device, {rows * units * packed_column_bytes(w)}, ScalarType::uint8, on);
  // One compile makes both kernels.
  const LazyKernel& kernel =
      packed_wgmma_family().instance(packed_wgmma_key(call, plan, true), [&] {
        return std::vector{format("arrange_columns<{}, {}, {}, {}>", device_type(call.x.type()),
                                  columns, run, sums),
                           packed_wgmma_name(call, plan)};
      });
  launch(kernel.on(device),
         {.grid = {static_cast<std::uint32_t>((rows * units * 8 + 127) / 128)},
          .block = {128},
          .stream = on,
          .programmatic_dependent = overlaps_launches(device)},
         problem, made.address(), static_cast<std::uint32_t>(units),
         static_cast<std::uint32_t>(rows));
  return made;
}

const LazyKernel& packed_wgmma_kernel(const PackedLinearCall& call, const SkinnyPlan& plan) {
  return packed_wgmma_family().instance(packed_wgmma_key(call, plan, false),
                                        [&] { return packed_wgmma_name(call, plan); });
}

}  // namespace kernwright::kernels
