// Matrix products with what follows them, on tensor cores; elsewhere the same results by plainer
// kernels.
#pragma once

#include "array/array.h"
#include "core/stream.h"
#include "kernels_src/epilogue/product_epilogue.h"
#include "kernels_src/gemm/gemm_plan.h"

#include <cstdint>
#include <optional>

namespace kernwright::kernels {

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
/// float16, bfloat16, float8_e4m3fn, float8_e5m2, and float32 with `tf32`: accumulators in float32.
/// int8: accumulators in int32, which are the result, or wrap around to int8; an epilogue takes
/// int32 accumulators with scales alone, in float32. float32 without `tf32`, and float64, whose
/// accumulators nothing follows: every product is rounded once, when it is added.
///
/// On compute capability 9.0 kernels of one pipeline do all (product_roles.cuh; after fast.cu by
/// P. Shankhdhar, DeepGEMM, and CUTLASS's persistent cooperative and ping-pong kernels): gemm.cu,
/// and for float8 promoted_gemm.cu, which adds the results of every 128 elements in float32. The
/// kernels read operands by tensor maps: rows or columns without gaps, on addresses and strides of
/// 16 bytes; further operands are copied first, the columns of the copy padded. float32 is rounded
/// to tf32 towards zero. Other devices from 8.0 on (8.9 for float8 of one type) take mma_gemm.cu,
/// which rounds to nearest. But for 16-bit types the elements along the inner dimension follow each
/// other. Where the device does not multiply float8, or not of two types, the operand becomes
/// bfloat16, exactly; numbers with scales of blocks are multiplied by the scales and rounded first.
/// float32 and float64 take fma_gemm.cu, with any strides. Products in more than two dimensions of
/// a batch that do not follow each other, and older devices, take the plain kernel of matmul.h in
/// float32. Additions run in a fixed order: each run gives equal results.
struct Gemm {
  Array a, b;
  ProductEpilogue epilogue{};  ///< without a residual: products/ puts it into c or behind
  std::optional<GemmBlockScales> block_scales{};  ///< of two matrices; no gate, no other scales
  /// Type of the result: float16, bfloat16 or float32; int8 or int32 of int8 without scales; where
  /// an epilogue quantises, float8_e4m3fn, float8_e5m2 or int8, without c and gate. Empty:
  /// as a's, float32 of float8, int32 of int8.
  std::optional<ScalarType> type{};
  bool tf32 = false;        ///< float32 operands are rounded to 11 bits of mantissa
  bool fast_accum = false;  ///< float8 products stay in the tensor cores' accumulators of 14 bits
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
/// Whether gemm.cu applies the gate to its accumulators: the device has wgmma, the gate is short,
/// and both halves of a row of b can be copied.
bool fuses_gate(const Gemm& gemm);
/// Whether each product is rounded once: not a matter for tensor cores.
bool is_exact_gemm(const Gemm& gemm);
/// Whether the results of every 128 elements of float8 are added in float32, by promoted_gemm.cu.
bool is_promoted(const Gemm& gemm);

}  // namespace kernwright::kernels
