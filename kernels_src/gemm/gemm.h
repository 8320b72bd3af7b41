// Matrix products with what follows them, on tensor cores; elsewhere the same results by plainer
// kernels.
#pragma once

#include "array/array.h"
#include "core/stream.h"
#include "kernels_src/activations/activations.h"
#include "kernels_src/gemm/gemm_plan.h"

#include <cstdint>
#include <optional>
#include <string>

namespace kernwright::kernels {

/// The end of a product, in float32: activation(alpha * (a @ b) + bias + beta * c). Scales of rows
/// and columns multiply a @ b first.
struct GemmEpilogue {
  float alpha = 1, beta = 1;
  std::optional<Array> bias{};  ///< (n,), float16, bfloat16 or float32
  std::optional<Array> c{};     ///< of the result's shape; any strides, any type of `bias`
  std::optional<ActivationCall> activation{};
  /// The result has n / 2 columns: gate(x[..., :n/2]) * x[..., n/2:], where x = alpha * (a @ b) +
  /// bias. b has both operands of a gated unit (SwiGLU with silu); no c, no activation.
  std::optional<ActivationCall> gate{};
  /// Both or none: float32, one number or one for each row (column) of a single matrix; no gate.
  std::optional<Array> row_scales{}, column_scales{};
  /// Not empty: the result is this expression of CUDA instead, in float, of the sum `x`, `alpha`,
  /// `beta`, the column's `bias` and the element `c` where those are given, CUDA's functions and
  /// those of include/product/custom_epilogue.cuh. Compiled at its first use.
  std::string expression{};
};

/// Elements that share a scale of GemmBlockScales.
constexpr std::int64_t kGemmBlock = 128;
/// Scales of float8 operands in blocks of 128 along the inner dimension, float32: of a's rows (m, k
/// / 128), of b's columns 128 at a time (k / 128, n / 128), rounded up.
struct GemmBlockScales {
  Array a, b;
};

/// activation(alpha * (a @ b) + bias + beta * c) for a of [..., m, k] and b of [..., k, n], both of
/// one type (or both of float8), whose dimensions in front are broadcast. A plan: what is to be
/// computed, and what about it is decided already. A value; holds the arrays' memory.
///
/// float16, bfloat16, float8_e4m3fn, float8_e5m2, and float32 with `tf32`: sums in float32. int8:
/// sums in int32, which are the result, or wrap around to int8; an epilogue takes int32 sums with
/// scales alone, in float32. float32 without `tf32`, and float64, whose sums nothing
/// follows: every product is rounded once, when it is added.
///
/// On compute capability 9.0 kernels of one pipeline do all (product_roles.cuh; after fast.cu by
/// P. Shankhdhar, DeepGEMM, and CUTLASS's persistent cooperative and ping-pong kernels): gemm.cu,
/// and for float8 promoted_gemm.cu, which adds the sums of every 128 elements in float32. The
/// kernels read operands by tensor maps: rows or columns without gaps, on addresses and strides of
/// 16 bytes; further operands are copied first, the columns of the copy padded. float32 is rounded
/// to tf32 towards zero. Other devices from 8.0 on (8.9 for float8 of one type) take mma_gemm.cu,
/// which rounds to nearest. But for 16-bit types the elements along the inner dimension follow each
/// other. Where the device does not multiply float8, or not of two types, the operand becomes
/// bfloat16, exactly; numbers with scales of blocks are multiplied by the scales and rounded first.
/// float32 and float64 take fma_gemm.cu, with any strides. Products in more than two dimensions of
/// a batch that do not follow each other, and older devices, take the plain kernel of matmul.h in
/// float32. The sums run in a fixed order: each run gives equal results.
struct Gemm {
  Array a, b;
  GemmEpilogue epilogue{};
  std::optional<GemmBlockScales> block_scales{};  ///< of two matrices; no gate, no other scales
  /// Type of the result: float16, bfloat16 or float32; int8 or int32 of int8 without scales; where
  /// an epilogue quantises, float8_e4m3fn, float8_e5m2 or int8, without c and gate. Empty:
  /// as a's, float32 of float8, int32 of int8.
  std::optional<ScalarType> type{};
  bool tf32 = false;       ///< float32 operands are rounded to 11 bits of mantissa
  bool fast_sums = false;  ///< of float8 all sums are the tensor cores' own, with 14 bits
  /// The first kernel to take, with its tile; the next one in the order above follows where it
  /// cannot. A gate without fuses_gate() comes behind the product that the plan is for. Products in
  /// products/ have plans of tables, see plan_gemm().
  GemmPlan plan{};
  /// Memory of the result, of its shape and type; see direct_target(). Apart from all operands.
  std::optional<Array> out{};

  /// Queues the work on `stream` (empty: the device's legacy stream). Throws InvalidArgument
  /// ("Incompatible dimensions", "same device") with the mismatch; ArgumentError for unknown
  /// element types and tiles; CompileError, OutOfMemory, DriverError.
  Array run(const Stream& stream = {}) const;
};

/// Gemm::run() of operands that fit and a plan that its kernel takes: neither is checked again.
Array run_checked(const Gemm& gemm, const Stream& stream);

/// The type of the result.
ScalarType gemm_result_type(const Gemm& gemm);
/// Whether gemm.cu applies the gate to its own sums: the device has wgmma, the gate is short, and
/// both halves of a row of b can be copied.
bool fuses_gate(const Gemm& gemm);
/// Whether each product is rounded once: not a matter for tensor cores.
bool is_exact_gemm(const Gemm& gemm);
/// Whether the sums of every 128 elements of float8 are added in float32, by promoted_gemm.cu.
bool is_promoted(const Gemm& gemm);

}  // namespace kernwright::kernels
