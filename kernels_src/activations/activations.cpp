// One kernel per activation and element type.
#include "kernels_src/activations/activations.h"

#include "base/errors.h"
#include "base/format.h"
#include "kernels_src/activations/activations.cu.h"
#include "kernels_src/family.h"
#include "kernels_src/operands.h"

#include <array>
#include <string>

namespace kernwright::kernels {
namespace {

struct ActivationNames {
  std::string_view name;
  const char* type;
};
// In the order of Activation.
constexpr std::array<ActivationNames, 18> kActivationNames = {{{"relu", "Relu"},
                                                               {"relu2", "Relu2"},
                                                               {"hardtanh", "HardTanh"},
                                                               {"leaky_relu", "LeakyRelu"},
                                                               {"elu", "Elu"},
                                                               {"selu", "Selu"},
                                                               {"sigmoid", "Sigmoid"},
                                                               {"log_sigmoid", "LogSigmoid"},
                                                               {"tanh", "Tanh"},
                                                               {"silu", "Silu"},
                                                               {"gelu", "Gelu"},
                                                               {"gelu_tanh", "GeluTanh"},
                                                               {"quick_gelu", "QuickGelu"},
                                                               {"softplus", "Softplus"},
                                                               {"softsign", "Softsign"},
                                                               {"mish", "Mish"},
                                                               {"hardswish", "HardSwish"},
                                                               {"hardsigmoid", "HardSigmoid"}}};

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

Activation activation_from_name(std::string_view name) {
  std::string known;
  for (std::size_t i = 0; i < kActivationNames.size(); ++i) {
    if (kActivationNames[i].name == name) return static_cast<Activation>(i);
    known += (i == 0 ? "" : ", ") + std::string(kActivationNames[i].name);
  }
  throw ArgumentError(format("\"{}\" is no activation; there are {}", name, known));
}

std::string_view activation_name(Activation kind) noexcept {
  return kActivationNames[static_cast<std::size_t>(kind)].name;
}

const char* activation_type(Activation kind) noexcept {
  return kActivationNames[static_cast<std::size_t>(kind)].type;
}

const char* activation_type(Activation kind, ScalarType type) noexcept {
  if (scalar_size(type) <= 2 && kind == Activation::gelu) return "ShortGelu";
  if (scalar_size(type) <= 2 && kind == Activation::gelu_tanh) return "ShortGeluTanh";
  if (scalar_size(type) <= 2 && kind == Activation::silu) return "ShortSilu";
  return activation_type(kind);
}

Array activate(const ActivationCall& call, const Array& x, const Stream& stream) {
  require_floating(x, std::string(activation_name(call.kind)).c_str(), "x");
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
  require_floating(x, std::string(activation_name(call.kind)).c_str(), "x");
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
