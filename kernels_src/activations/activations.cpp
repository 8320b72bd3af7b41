// One kernel per activation and element type.
#include "kernels_src/activations/activations.h"

#include "base/errors.h"
#include "base/format.h"
#include "kernels_src/activations/activations.cu.h"
#include "kernels_src/family.h"
#include "kernels_src/operands.h"

#include <string>

namespace kernwright::kernels {
namespace {

/// Throws ArgumentError unless `name` is a row that as many kinds of products take.
Activation find_activation(std::string_view name, int products, const char* takers) {
  std::string known;
  for (const ActivationTraits& row : kActivationTraits) {
    if (row.products() < products) continue;
    if (row.name == name) return static_cast<Activation>(&row - kActivationTraits.data());
    known += format("{}{}", known.empty() ? "" : ", ", row.name);
  }
  throw ArgumentError(format("\"{}\" is no activation{}; there are {}", name, takers, known));
}

const LazyKernel& activation_kernel(bool backward, Activation kind, ScalarType type, int width,
                                    const PackGrid& grid) {
  static const auto& family = *new Family("activations.cu", text::activations_cu);
  return family.instance(activation_key(backward, kind, type, width, grid), [&] {
    return activation_instance(backward ? "activate_backward" : "activate", kind, type, width,
                               grid);
  });
}

}  // namespace

InstanceKey activation_key(bool backward, Activation kind, ScalarType type, int width,
                           const PackGrid& grid) {
  return InstanceKey()
      .add(backward, 1)
      .add(kind, 5)
      .type(type)
      .add(width, 5)
      .add(grid.packs_each, 3)
      .add(grid.wide, 1);
}

std::string activation_instance(const char* name, Activation kind, ScalarType type, int width,
                                const PackGrid& grid) {
  return format("{}<{}, {}, {}, {}, {}>", name, activation_type(kind, type), device_type(type),
                width, grid.packs_each, index_type(grid.wide));
}

Activation activation_from_name(std::string_view name) { return find_activation(name, 0, ""); }

ActivationCall product_activation(std::string_view name, bool grouped) {
  return {grouped ? find_activation(name, 2, " of grouped products")
                  : find_activation(name, 1, " of products")};
}

const char* activation_type(Activation kind, ScalarType type) noexcept {
  const ActivationTraits& row = activation_traits(kind);
  return scalar_size(type) <= 2 ? row.half_type : row.type;
}

Array activate(const ActivationCall& call, const Array& x, const Stream& stream) {
  require_floating(x, std::string(activation_traits(call.kind).name).c_str(), "x");
  const Stream on = stream ? stream : Stream::legacy(x.device());
  const Array from = contiguous(x, on);
  Array result = Array::empty(x.device(), x.shape(), x.type(), on);
  if (x.size() == 0) return result;
  const int width = pack_width(x.type(), {from.address(), result.address()});
  const PackGrid grid = pack_grid((x.size() + width - 1) / width, width, on);
  const Kernel& kernel = activation_kernel(false, call.kind, x.type(), width, grid).on(x.device());
  dispatch_index(grid.wide, [&](auto zero) {
    dispatch_compute(x.type(), [&](auto real) {
      launch(kernel, grid.config, from.address(), result.address(),
             static_cast<decltype(zero)>(x.size()), Knobs<decltype(real)>(call));
    });
  });
  from.use_on(on);
  result.use_on(on);
  return result;
}

Array activate_backward(const ActivationCall& call, const Array& dy, const Array& x,
                        const Stream& stream) {
  require_floating(x, std::string(activation_traits(call.kind).name).c_str(), "x");
  require_alike(dy, "the gradient", x, "x");
  const Stream on = stream ? stream : Stream::legacy(x.device());
  const Array from = contiguous(x, on), gradient = contiguous(dy, on);
  Array result = Array::empty(x.device(), x.shape(), x.type(), on);
  if (x.size() == 0) return result;
  const int width = pack_width(x.type(), {from.address(), gradient.address(), result.address()});
  const PackGrid grid = pack_grid((x.size() + width - 1) / width, width, on);
  const Kernel& kernel = activation_kernel(true, call.kind, x.type(), width, grid).on(x.device());
  dispatch_index(grid.wide, [&](auto zero) {
    dispatch_compute(x.type(), [&](auto real) {
      launch(kernel, grid.config, gradient.address(), from.address(), result.address(),
             static_cast<decltype(zero)>(x.size()), Knobs<decltype(real)>(call));
    });
  });
  from.use_on(on);
  gradient.use_on(on);
  result.use_on(on);
  return result;
}

}  // namespace kernwright::kernels
