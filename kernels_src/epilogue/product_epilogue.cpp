// The checks of an epilogue, its parts, and the kernels behind a product.
#include "kernels_src/epilogue/product_epilogue.h"

#include "base/errors.h"
#include "base/format.h"
#include "kernels_src/cast/cast.h"
#include "kernels_src/copy/copy.h"
#include "kernels_src/elementwise/elementwise.h"
#include "kernels_src/operands.h"

#include <utility>

namespace kernwright::kernels {
namespace {

bool is_epilogue_type(ScalarType type) { return is_half(type) || type == ScalarType::float32; }

/// Calls `work` with each given array and the operand that it is.
template <typename Work>
void for_each_operand(const ProductEpilogue& epilogue, const Work& work) {
  for (const EpilogueOperand& operand : kEpilogueOperands) {
    const std::optional<Array>& array = epilogue.*operand.array;
    if (array) work(*array, operand);
  }
}

/// a + b, in `out` where that is given.
Array add_to_product(const Array& a, const Array& b, const std::optional<Array>& out,
                     const Stream& stream) {
  const std::array<Operand, 2> operands = {Operand{&a}, Operand{&b}};
  if (!out) return elementwise(Operation::add, operands, stream);
  write_elementwise(*out, Operation::add, operands, stream);
  return *out;
}

}  // namespace

void require_epilogue(const ProductEpilogue& epilogue, const EpilogueForm& form) {
  for_each_operand(epilogue, [&](const Array& array, const EpilogueOperand& operand) {
    require_one_device(form.x, "x", array, operand.name);
    const Shape& wanted = operand.by_column ? form.columns : form.result;
    if (!form.type && !is_epilogue_type(array.type())) {
      throw ArgumentError(
          format("{} is float16, bfloat16 or float32, not {}", operand.name, array.identify()));
    }
    if (array.shape() == wanted && (!form.type || array.type() == *form.type)) return;
    throw InvalidArgument(
        format("Incompatible dimensions or dtypes for {}: {} is a {}, and must be {}of shape {}",
               form.product, operand.name, array.identify(),
               form.type ? format("{} ", scalar_name(*form.type)) : std::string(),
               shape_to_string(wanted)));
  });
}

void require_layer_epilogue(const ProductEpilogue& epilogue, std::string_view product) {
  const bool scales = epilogue.alpha != 1 || epilogue.row_scales || epilogue.column_scales;
  const bool gates_more = epilogue.gate && (epilogue.activation || epilogue.residual);
  if (!scales && !epilogue.c && epilogue.expression.empty() && !gates_more) return;
  throw ArgumentError(
      format("{} takes a bias, an activation and a residual, or a bias and a gate", product));
}

void require_apart(const std::optional<Array>& out, const ResultForm& form,
                   const ProductEpilogue& epilogue) {
  for_each_operand(epilogue, [&](const Array& array, const EpilogueOperand& operand) {
    if (operand.array == &ProductEpilogue::residual) {
      require_apart_or_same(out, form, {{operand.name, &array}});
    } else {
      require_apart(out, form, {{operand.name, &array}});
    }
  });
}

bool may_overlap(const Array& out, const ProductEpilogue& epilogue) {
  bool overlaps = false;
  for_each_operand(epilogue, [&](const Array& array, const EpilogueOperand& operand) {
    overlaps = overlaps || (!operand.by_column && may_overlap(out, array));
  });
  return overlaps;
}

ProductEpilogue epilogue_columns(const ProductEpilogue& epilogue, std::int64_t first,
                                 std::int64_t count) {
  ProductEpilogue part = epilogue;
  for_each_operand(epilogue, [&](const Array& array, const EpilogueOperand& operand) {
    part.*operand.array = array.slice(array.ndim() - 1, first, count, 1);
  });
  return part;
}

ProductEpilogue epilogue_rows(const ProductEpilogue& epilogue, const Shape& rows,
                              const Stream& stream) {
  ProductEpilogue made = epilogue;
  for_each_operand(epilogue, [&](const Array& array, const EpilogueOperand& operand) {
    if (!operand.by_column) made.*operand.array = reshaped(array, rows, stream);
  });
  return made;
}

ProductEpilogue ready_epilogue(const ProductEpilogue& epilogue, std::optional<ScalarType> type,
                               const Stream& on) {
  ProductEpilogue ready = epilogue;
  for_each_operand(epilogue, [&](const Array& array, const EpilogueOperand& operand) {
    if (!operand.by_column && !type) return;
    const bool keeps_type = operand.by_column || array.type() == *type;
    ready.*operand.array = keeps_type ? contiguous(array, on) : cast(array, *type, on);
  });
  for (auto* scales : {&ready.row_scales, &ready.column_scales}) {
    if (*scales) *scales = contiguous(**scales, on);
  }
  return ready;
}

void use_epilogue(const ProductEpilogue& epilogue, const Stream& on) {
  for_each_operand(epilogue, [&](const Array& array, const EpilogueOperand&) { array.use_on(on); });
  for (const auto* scales : {&epilogue.row_scales, &epilogue.column_scales}) {
    if (*scales) (*scales)->use_on(on);
  }
}

ProductEpilogue take_rest(ProductEpilogue& epilogue) {
  ProductEpilogue rest;
  if (!epilogue.residual) return rest;
  if (epilogue.activation || epilogue.c || !epilogue.expression.empty()) {
    rest.residual = std::exchange(epilogue.residual, std::nullopt);
  } else {
    epilogue.c = std::exchange(epilogue.residual, std::nullopt);
  }
  return rest;
}

ProductEpilogue take_gate(ProductEpilogue& epilogue) {
  return {.gate = std::exchange(epilogue.gate, std::nullopt)};
}

Array run_rest(const Array& product, const ProductEpilogue& rest, const std::optional<Array>& out,
               const Stream& stream) {
  Array result = product;
  if (rest.bias && rest.activation) {
    result = bias_activate(*rest.activation, result, *rest.bias, stream);
  } else if (rest.bias) {
    result = add_to_product(result, *rest.bias, {}, stream);
  } else if (rest.activation) {
    result = activate(*rest.activation, result, stream);
  }
  if (rest.gate) result = gate(*rest.gate, result, std::nullopt, stream);
  return rest.residual ? add_to_product(result, *rest.residual, out, stream) : result;
}

}  // namespace kernwright::kernels
