// How the operands of a product lie in memory, and the products of a batch in one numbering.
#pragma once

#include "array/array.h"
#include "core/stream.h"
#include "jit/kernels_ahead.h"
#include "kernels_src/matmul/matmul_batch.h"

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <vector>

namespace kernwright::kernels {

/// Matrices in the form of tensor maps.
struct GemmOperand {
  Array array;
  bool dense_rows = true;            ///< the elements of a row follow each other; else of a column
  std::optional<Array> source = {};  ///< of a copy that is not made yet

  /// Makes the copy where there is one to make.
  void fill(const Stream& stream) const;
};
/// `array` itself, or a copy if tensor maps cannot take it. Leading dimensions with repeated memory
/// have the extent 1. `dense_rows`: which elements must follow each other, where given.
GemmOperand gemm_operand(const Array& array, const Stream& stream,
                         std::optional<bool> dense_rows = std::nullopt);
/// gemm_operand(), but fill() makes the copy.
GemmOperand plan_operand(const Array& array, const Stream& stream,
                         std::optional<bool> dense_rows = std::nullopt);

/// plan_operand() of a and of b in a @ b. Elements of 16 bits may follow each other along either
/// axis, others along the inner dimension alone.
struct GemmOperands {
  GemmOperand a, b;
};
GemmOperands plan_operands(const Array& a, const Array& b, const Stream& stream);

/// Whether plan_operand() gives rows whose elements follow each other, where it may choose.
bool has_dense_rows(const Array& array);

/// The kernel of a product; copies the operands in need of it, and meanwhile compiles the kernel.
const Kernel& kernel_for(std::initializer_list<const GemmOperand*> operands,
                         const LazyKernel& kernel, Device& device, KernelsAhead& kernels,
                         const Stream& stream);

/// Bytes between the lines of a contiguous matrix, or of the copy if tensor maps cannot take it.
std::int64_t operand_pitch(std::int64_t bytes) noexcept;

struct GemmLayout {
  std::int64_t rows = 0, columns = 0, inner = 0;
  std::int64_t a_stride = 0, b_stride = 0;  ///< bytes between dense rows (columns)
  BatchDim within{}, outer{};               ///< the inner and the outer dimension of the batch
  std::int64_t batches() const noexcept { return within.extent * outer.extent; }
};
/// The layout of products whose result has `shape`, as both operands may repeat along a dimension
/// of the batch. Neighbouring dimensions become one, and dimensions of a alone become rows. Nothing
/// where more than two are left or a number is too large for the kernel.
std::optional<GemmLayout> gemm_layout(const GemmOperand& a, const GemmOperand& b,
                                      const Shape& shape);

}  // namespace kernwright::kernels
