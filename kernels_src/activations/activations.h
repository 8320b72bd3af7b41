// Activations, element by element, and gradients through them.
#pragma once

#include "array/array.h"
#include "core/stream.h"
#include "kernels_src/family.h"
#include "kernels_src/operands.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kernwright::kernels {

enum class Activation : std::uint8_t {
#define KW_ACTIVATION(name, ...) name,
#include "kernels_src/activations/activation.def"
#undef KW_ACTIVATION
};

struct ActivationTraits {
  std::string_view name{};       ///< as Python and messages name it
  const char* type = "";         ///< the struct of include/activations.cuh
  const char* half_type = type;  ///< the struct for elements of 16 bits and fewer
  const char* tile_type = type;  ///< the struct for the accumulators of gemm.cu
  bool is_short = false;         ///< gemm.cu takes it: few instructions for each accumulator
  bool has_numbers = false;      ///< its `a` and `b` are the caller's: products do not take it

  /// 0: products do not take it; 1: layers do; 2: products of groups do, too.
  constexpr int products() const { return has_numbers ? 0 : is_short ? 2 : 1; }
};

inline constexpr auto kActivationTraits = std::array{
#define KW_ACTIVATION(activation, ...) ActivationTraits{.name = #activation, __VA_ARGS__},
#include "kernels_src/activations/activation.def"
#undef KW_ACTIVATION
};
static_assert(std::ranges::none_of(kActivationTraits,
                                   [](const auto& row) { return *row.type == '\0'; }),
              "each row of activation.def has a type");
static_assert(kActivationTraits.size() <= 32, "keys of kernels have 5 bits for an activation");

constexpr const ActivationTraits& activation_traits(Activation kind) {
  return kActivationTraits[static_cast<std::size_t>(kind)];
}

/// An activation and the numbers it takes (see include/activations.cuh).
struct ActivationCall {
  Activation kind = Activation::relu;
  double a = 1;
  double b = 1;
};

/// By name: "gelu_tanh". Throws ArgumentError that lists the names.
Activation activation_from_name(std::string_view name);
/// The activation of a product, `grouped` or not. Throws ArgumentError, which lists the names, for
/// one that such products do not take.
ActivationCall product_activation(std::string_view name, bool grouped = false);
/// The struct of include/activations.cuh for elements of `type`.
const char* activation_type(Activation kind, ScalarType type) noexcept;
/// The key of "name<activation, element type, elements of a pack, packs of a thread, index>".
InstanceKey activation_key(bool backward, Activation kind, ScalarType type, int width,
                           const PackGrid& grid);
std::string activation_instance(const char* name, Activation kind, ScalarType type, int width,
                                const PackGrid& grid);

/// `Knobs` of include/activations.cuh.
template <typename Real>
struct Knobs {
  explicit Knobs(const ActivationCall& call)
      : a(static_cast<Real>(call.a)), b(static_cast<Real>(call.b)) {}
  Real a, b;
};

/// The activation of every element, as a row-major array of the shape and type of `x`: real floats,
/// any strides, any size. float16, bfloat16 and the 8-bit floats are computed in float, float64 in
/// double. Queued on `stream` (empty: the device's legacy stream). Throws ArgumentError for other
/// types.
Array activate(const ActivationCall& call, const Array& x, const Stream& stream = {});

/// `dy` times the derivative at `x`; both of one shape, type and device, else InvalidArgument.
Array activate_backward(const ActivationCall& call, const Array& dy, const Array& x,
                        const Stream& stream = {});

/// Rows plus a bias, then the activation: activation(x + bias), `bias` of shape (x.shape[-1],).
Array bias_activate(const ActivationCall& call, const Array& x, const Array& bias,
                    const Stream& stream = {});

struct BiasGradients {
  Array x;
  Array bias;
};
/// The gradients of bias_activate(). The bias gradient is a sum over rows in a fixed order: every
/// run gives equal bits.
BiasGradients bias_activate_backward(const ActivationCall& call, const Array& dy, const Array& x,
                                     const Array& bias, const Stream& stream = {});

/// activation(gate) * up: SwiGLU with silu, GEGLU with gelu, ReGLU with relu, GLU with sigmoid
/// (N. Shazeer, "GLU variants improve transformer", 2020). Without `up`, `gate` holds both: the
/// gate in the first half of the last axis, `up` in the second.
Array gate(const ActivationCall& call, const Array& gate, const std::optional<Array>& up,
           const Stream& stream = {});

struct GateGradients {
  Array gate;  ///< of both halves where there was no `up`
  std::optional<Array> up;
};
GateGradients gate_backward(const ActivationCall& call, const Array& dy, const Array& gate,
                            const std::optional<Array>& up, const Stream& stream = {});

}  // namespace kernwright::kernels
