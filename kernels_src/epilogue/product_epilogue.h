// The end of a product: one description for tiles, few rows and packed weights.
#pragma once

#include "array/array.h"
#include "core/stream.h"
#include "kernels_src/activations/activations.h"
#include "kernels_src/result_target.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kernwright::kernels {

/// What follows the accumulators of a product, in float32: activation(alpha * (a @ b) + bias + beta
/// * c) + residual. Scales of rows and columns multiply a @ b first. A new operand needs a member
/// here and a row in kEpilogueOperands, a member in ProductEpilogueValues with a line in
/// epilogue_values(), a term in apply_epilogue() (include/product/product_epilogue.cuh), and a step
/// in run_rest() for the products whose kernels do not read it.
struct ProductEpilogue {
  float alpha = 1, beta = 1;
  std::optional<Array> bias{};      ///< (n,)
  std::optional<Array> c{};         ///< of the result's shape; kernels of tiles alone
  std::optional<Array> residual{};  ///< of the result's shape
  std::optional<ActivationCall> activation{};
  /// The result has n / 2 columns: gate(x[..., :n/2]) * x[..., n/2:], where x = alpha * (a @ b) +
  /// bias. b has both operands of a gated unit (SwiGLU with silu); no c, residual and activation.
  std::optional<ActivationCall> gate{};
  /// Float32, one number or one for each row (column) of a single matrix; no gate. Tiles: both or
  /// none; few rows: those of columns alone.
  std::optional<Array> row_scales{}, column_scales{};
  /// Not empty, for tiles: the result is this expression of CUDA instead, in float, of the sum `x`,
  /// `alpha`, `beta`, the column's `bias` and the element `c` where those are given, CUDA's
  /// functions and those of include/product/custom_epilogue.cuh. Compiled at its first use.
  std::string expression{};
};

/// An array of an epilogue that has an element for each column, or for each element of the result.
struct EpilogueOperand {
  const char* name;
  std::optional<Array> ProductEpilogue::*array;
  bool by_column;
};
inline constexpr std::array kEpilogueOperands{
    EpilogueOperand{"bias", &ProductEpilogue::bias, true},
    EpilogueOperand{"c", &ProductEpilogue::c, false},
    EpilogueOperand{"residual", &ProductEpilogue::residual, false},
};

/// What the arrays of an epilogue must fit; it refers to the arrays.
struct EpilogueForm {
  std::string_view product;          ///< "linear()": named in messages
  const Array& x;                    ///< of the device
  const Shape& result;               ///< of the product without a gate
  std::optional<ScalarType> type{};  ///< of the arrays; empty: float16, bfloat16 or float32, each
  Shape columns{result.back()};      ///< of an array with an element for each column
};
/// Throws InvalidArgument ("Incompatible dimensions", "same device") or ArgumentError, for a type
/// where the form has none, unless bias, c and residual fit.
void require_epilogue(const ProductEpilogue& epilogue, const EpilogueForm& form);
/// Throws ArgumentError where the epilogue of a layer has more than bias, activation and residual,
/// or more than bias and gate.
void require_layer_epilogue(const ProductEpilogue& epilogue, std::string_view product);
/// Throws InvalidArgument where `out` of the form may share memory with an array of the epilogue. A
/// residual may be `out` itself.
void require_apart(const std::optional<Array>& out, const ResultForm& form,
                   const ProductEpilogue& epilogue);
/// Whether `out` may share memory with an array of the result's shape.
bool may_overlap(const Array& out, const ProductEpilogue& epilogue);

/// The epilogue of `count` columns of the product from `first` on.
ProductEpilogue epilogue_columns(const ProductEpilogue& epilogue, std::int64_t first,
                                 std::int64_t count);
/// The epilogue of a result whose dimensions in front are one.
ProductEpilogue epilogue_rows(const ProductEpilogue& epilogue, const Shape& rows,
                              const Stream& stream);
/// The epilogue with arrays of columns and scales contiguous; with `type` also those of the
/// result's shape, and of this type.
ProductEpilogue ready_epilogue(const ProductEpilogue& epilogue, std::optional<ScalarType> type,
                               const Stream& on);
/// Marks all arrays as used by the stream.
void use_epilogue(const ProductEpilogue& epilogue, const Stream& on);

/// Takes out of `epilogue` what kernels of tiles do not apply, and returns it: a residual behind an
/// activation. Another residual takes the place of c.
ProductEpilogue take_rest(ProductEpilogue& epilogue);
/// Takes the gate alone.
ProductEpilogue take_gate(ProductEpilogue& epilogue);
/// Applies what kernels of a product left: a kernel for each step, which rounds its result to the
/// type of `product`. The last step writes to `out` where that is given and the step can.
Array run_rest(const Array& product, const ProductEpilogue& rest, const std::optional<Array>& out,
               const Stream& stream);

}  // namespace kernwright::kernels
