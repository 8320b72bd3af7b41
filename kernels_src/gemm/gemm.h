// Matrix products of 16-bit floats with what follows them, on the tensor cores of compute
// capability 9.0; elsewhere the same results by plainer kernels.
#pragma once

#include "array/array.h"
#include "core/stream.h"
#include "kernels_src/activations/activations.h"
#include "kernels_src/gemm/gemm_choice.h"

#include <optional>

namespace kernwright::kernels {

/// What follows the sums of a product, in float32: activation(alpha * (a @ b) + bias + beta * c).
struct GemmEpilogue {
  float alpha = 1, beta = 1;
  std::optional<Array> bias{};  ///< (n,), float16, bfloat16 or float32
  std::optional<Array> c{};     ///< of the result's shape; any strides, any type of `bias`
  std::optional<ActivationCall> activation{};
  /// The result has n / 2 columns: gate(x[..., :n/2]) * x[..., n/2:], where x = alpha * (a @ b) +
  /// bias. b has both operands of a gated unit (SwiGLU with silu); no c, no activation.
  std::optional<ActivationCall> gate{};
};

/// activation(alpha * (a @ b) + bias + beta * c) for a of [..., m, k] and b of [..., k, n], both
/// float16 or both bfloat16, whose dimensions in front are broadcast; sums in float32. A plan: what
/// is to be computed, and what about it is decided already. A value; holds the arrays' memory.
///
/// On compute capability 9.0 one kernel does all (gemm.cu; after fast.cu by P. Shankhdhar,
/// DeepGEMM, and CUTLASS's persistent cooperative and ping-pong kernels). It reads operands by
/// tensor maps: rows or columns without gaps, on addresses and strides of 16 bytes; others are
/// copied first, the columns of the copy padded. Products in more than two dimensions of a batch
/// that do not follow each other, and other devices, take the plain kernel of matmul.h in float32.
/// The sums run in a fixed order: the same results each time.
struct Gemm {
  Array a, b;
  GemmEpilogue epilogue{};
  std::optional<ScalarType> type{};  ///< of the result: float16, bfloat16 or float32; empty: as a's
  std::optional<GemmTile> tile{};    ///< empty: choose_gemm() decides
  int splits = 0;                    ///< of the inner dimension; 0: choose_gemm() decides

  /// Queues the work on `stream` (empty: the device's legacy stream). Throws InvalidArgument
  /// ("Incompatible dimensions", "same device") with what does not fit; ArgumentError for element
  /// types and tiles that there are not; CompileError, OutOfMemory, DriverError.
  Array run(const Stream& stream = {}) const;
};

/// Whether gemm.cu runs for these operands: their type and device.
bool has_fast_gemm(const Array& a, const Array& b);

}  // namespace kernwright::kernels
