// Groups gradients by type, and launches their norm, scaling and sums.
#include "kernels_src/optim/gradients.h"

#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"
#include "jit/kernels_ahead.h"
#include "kernels_src/optim/step_words.h"
#include "kernels_src/optim/tensor_lists.h"

#include <cmath>
#include <functional>

namespace kernwright::kernels {

namespace {

/// The kernels' way to a norm.
struct NormOrder {
  const char* name;
  int number;
};

NormOrder norm_order(double order) {
  if (!(order > 0))
    throw InvalidArgument(format("norm_type is above 0 (infinity: the largest), got {}", order));
  if (std::isinf(order)) return {"kLargest", 0};
  if (order == 1) return {"kMagnitudes", 1};
  if (order == 2) return {"kSquares", 2};
  return {"kPowers", 3};
}

}  // namespace

GradientNorm gradient_norm(const std::vector<Array>& grads, double limit, double order,
                           const Stream& stream) {
  if (grads.empty()) throw InvalidArgument("the norm of no gradients has no device: pass some");
  if (!(limit >= 0)) throw InvalidArgument(format("max_norm is not negative, got {}", limit));
  const NormOrder kind = norm_order(order);
  Device& device = grads[0].device();
  std::int64_t blocks = 0;
  for (std::size_t i = 0; i < grads.size(); ++i) {
    require_optimizer_tensor(grads[i], grads[i], "grads", i, false);
    if (&grads[i].device() != &device)
      throw InvalidArgument(format("all gradients must be on the same device: {} and {}",
                                   grads[0].identify(), grads[i].identify()));
    blocks += (grads[i].size() + static_cast<std::int64_t>(kTableChunk) - 1) /
              static_cast<std::int64_t>(kTableChunk);
  }
  const Stream on = stream ? stream : Stream::legacy(device);
  const std::vector<Array> whole = contiguous_tensors(grads, stream);
  const Array partial = Array::empty(device, {blocks}, ScalarType::float64, stream);
  GradientNorm result = {Array::empty(device, {}, ScalarType::float32, stream),
                         Array::empty(device, {}, ScalarType::float32, stream)};
  CUdeviceptr next = partial.address();
  const LazyKernel& finish =
      optimizer_family().instance(InstanceKey().add(kind.number, 2).add(3, 2),
                                  [&] { return format("finish_norm<{}>", kind.name); });
  KernelsAhead kernels;
  kernels.begin(finish, device);
  for (const auto& [group, members] : type_groups(whole, whole)) {
    const auto key =
        InstanceKey().type(group.grad).add(kind.number, 2).add(group.width, 3).add(2, 2);
    const LazyKernel& kernel = optimizer_family().instance(key, [&, &shape = group] {
      return format("chunk_norms<{}, {}, {}>", device_type(shape.grad), kind.name, shape.width);
    });
    for_each_table(
        members, whole,
        [&](TensorTable& table, std::size_t slot, std::size_t i) {
          table.grad[slot] = whole[i].address();
        },
        [&](const TensorTable& table) {
          const LaunchConfig config = table_config(table, on);
          launch(kernel.on(device), config, next, table, order);
          next += config.grid.x * sizeof(double);
        });
  }
  LaunchConfig config;
  config.block = {1024};
  config.stream = on;
  launch(kernels.on(finish, device), config, result.norm.address(), result.scale.address(),
         partial.address(), static_cast<std::uint32_t>(blocks), limit, order);
  use_tensors(whole, on);
  use_tensors({partial, result.norm, result.scale}, on);
  return result;
}

void scale_tensors(const std::vector<Array>& tensors, const Array& scale, const Stream& stream) {
  if (tensors.empty()) return;
  Device& device = tensors[0].device();
  require_optimizer_list(tensors, tensors, "grads", true);
  const CUdeviceptr factor = word_address(scale, ScalarType::float32, "scale", device);
  const Stream on = stream ? stream : Stream::legacy(device);
  for (const auto& [group, members] : type_groups(tensors, tensors)) {
    const auto key = InstanceKey().type(group.grad).add(group.width, 3).add(0, 2);
    const LazyKernel& kernel = optimizer_family().instance(key, [&, &shape = group] {
      return format("scale_tensors<{}, {}>", device_type(shape.grad), shape.width);
    });
    for_each_table(
        members, tensors,
        [&](TensorTable& table, std::size_t slot, std::size_t i) {
          table.param[slot] = tensors[i].address();
        },
        [&](const TensorTable& table) {
          launch(kernel.on(device), table_config(table, on), table, factor);
        });
  }
  use_tensors(tensors, on);
  scale.use_on(on);
}

void blend_tensors(const std::vector<Array>& to, const std::vector<Array>& from, double alpha,
                   double beta, const std::optional<BlendCount>& count, const Stream& stream) {
  if (to.empty()) return;
  Device& device = to[0].device();
  require_optimizer_list(to, to, "sums", true);
  require_optimizer_list(from, to, "grads", false);
  for (std::size_t i = 0; i < to.size(); ++i)
    if (scalar_size(to[i].type()) < sizeof(float))
      throw InvalidArgument(
          format("sums[{}] is float32 or float64, not {}", i, scalar_name(to[i].type())));
  CUdeviceptr total = 0, weight = 0;
  std::function<void()> counting;
  if (count) {
    if (!count->weight && count->number < 0)
      throw InvalidArgument(format("tokens are not negative, got {}", count->number));
    total = word_address(count->total, ScalarType::int64, "the count of tokens", device);
    weight = word_address(count->weight, ScalarType::int64, "tokens", device);
    if (!count->weight && count->number == 0) return;
    if (!count->weight && count->is_factor) beta *= static_cast<double>(count->number);
    counting = prepare_count(count->total, count->weight, count->number, stream);
  }
  const Stream on = stream ? stream : Stream::legacy(device);
  const std::vector<Array> whole = contiguous_tensors(from, stream);
  const std::int32_t is_factor = !count || count->is_factor ? 1 : 0;
  const OptimizerGroups groups = type_groups(to, whole);
  std::vector<const Kernel*> kernels;
  for (const auto& [group, members] : groups) {
    const auto key =
        InstanceKey().type(group.param).type(group.grad).add(group.width, 3).add(0, 4).add(3, 2);
    const LazyKernel& kernel = optimizer_family().instance(key, [&, &shape = group] {
      return format("blend_tensors<{}, {}, {}>", device_type(shape.param), device_type(shape.grad),
                    shape.width);
    });
    kernels.push_back(&kernel.on(device));
  }
  std::size_t next = 0;
  for (const auto& [group, members] : groups) {
    const Kernel& kernel = *kernels[next++];
    for_each_table(
        members, to,
        [&](TensorTable& table, std::size_t slot, std::size_t i) {
          table.param[slot] = to[i].address();
          table.grad[slot] = whole[i].address();
        },
        [&](const TensorTable& table) {
          launch(kernel, table_config(table, on), table, alpha, beta, total, weight, is_factor);
        });
  }
  if (counting) counting();
  use_tensors(to, on);
  use_tensors(whole, on);
  if (count && count->weight) count->weight->use_on(on);
}

}  // namespace kernwright::kernels
