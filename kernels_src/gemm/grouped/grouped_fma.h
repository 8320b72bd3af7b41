// Products of groups in float32, by fma_gemm.cu: tensor cores would round the operands.
#pragma once

#include "kernels_src/gemm/grouped/grouped_rows.h"

#include <cstdint>
#include <optional>

namespace kernwright::kernels {

/// A checked product of groups of float32: x (rows, k) and weights (groups, n, k), any strides.
struct GroupedFma {
  const Array &x, &weights;
  ProductGroups groups;
  std::int64_t capacity;  ///< rows of a group in a place of its own, else 0
  std::optional<FmaTile> tile;

  /// The result's rows, (rows, n); with a gate (rows, n / 2). They are in `target`, memory of that
  /// shape, unless a gate follows. Throws InvalidArgument for sizes that the kernel cannot count.
  Array run(const ProductEpilogue& ending, const std::optional<Array>& target,
            const Stream& on) const;

 private:
  void run_on(const Array& result, const ProductEpilogue& ending, const Stream& on) const;
};

/// grad[rows of g]^T @ x[rows of g] into `result`, (groups, n, k), all float32. Throws as above.
void run_gradient_fma(const Array& grad, const Array& x, const ProductGroups& groups,
                      const Array& result, const Stream& on);

}  // namespace kernwright::kernels
