// Quantised weights in a layout of their own, which products read as they are.
#pragma once

#include "array/array.h"
#include "core/stream.h"
#include "kernels_src/epilogue/product_epilogue.h"
#include "kernels_src/norm/norm.h"
#include "kernels_src/packed/packed_format.h"
#include "kernels_src/plans/skinny_plan.h"

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernwright::kernels {

/// Weights of n rows and k columns. Rows are cut into tiles of 16, k into blocks of 128 (the last
/// ones are filled with zeros). include/packed/packed_weights.cuh tells a lane's share of them.
struct PackedWeights {
  PackedFormat format{};
  std::int64_t n = 0, k = 0;
  std::int64_t group = 0;                  ///< numbers of a scale; of int4, nf4, fp4
  std::array<std::int64_t, 2> tile{1, 1};  ///< of fp8_block
  /// The arrays, contiguous: codes; upper bits (q5_0, q5_1, q3_k, q5_k, q6_k); scales; zeros of
  /// groups (int4) or scales of scales (q2_k, q3_k, q6_k); of nested absmax (nf4, fp4) the table,
  /// scales and offset. nvfp4 keeps its number for all in place of the offset. Last the order
  /// (int4, where groups are not in theirs): column i here is column order[i] of the weights,
  /// int32.
  static constexpr std::size_t kParts = 8;
  std::array<std::optional<Array>, kParts> parts{};

  constexpr const PackedTraits& traits() const { return packed_traits(format); }
};

/// How the parts of a format's tensors are read.
enum class PackedSource : std::uint8_t { gptq, awq, other };

/// Brings weights into the layout. `blocks` are, by format:
/// - int4 from GPTQ or AWQ: codes, scales, and zeros if there are three; without them a zero is 8.
///   The tensors are transposed weights, (k, n). `zero_offset` is added to zeros.
/// - nf4, fp4: codes of n * k numbers in turn, absmax; or codes, bytes, table, scales, offset.
/// - formats of GGUF: the blocks.
/// - mxfp4: codes (n, k / 2), exponents (n, k / 32). nvfp4: codes, scales (n, k / 16), one number.
/// - fp8_block: values (n, k), scales of its tiles.
/// Throws InvalidArgument with the shapes or dtypes that do not fit; CompileError, OutOfMemory,
/// DriverError.
struct PackCall {
  PackedFormat format{};
  PackedSource source = PackedSource::other;
  std::vector<Array> blocks{};
  std::int64_t n = 0, k = 0;
  std::int64_t group = 0;  ///< of nf4 and fp4
  std::array<std::int64_t, 2> tile{128, 128};
  int zero_offset = 0;
  /// For GPTQ: the group of each column, int32 of k numbers. Each group must have k / groups
  /// columns and exist, else numbers are NaN. Columns are packed group by group.
  std::optional<Array> groups{};
};
PackedWeights pack_weights(const PackCall& call, const Stream& stream = {});

/// Throws InvalidArgument unless n, k, group and tile are such as the format has.
void check_packed_shape(const PackedWeights& weights);
/// Throws InvalidArgument unless all parts are there as the format, n and k ask for them.
void check_packed(const PackedWeights& weights);

/// The numbers of rows `first` to `last`, (last - first, k), as float16, bfloat16 or float32:
/// what the dequantize functions give, bit by bit.
Array unpack_weights(const PackedWeights& weights, std::int64_t first, std::int64_t last,
                     ScalarType type, const Stream& stream = {});

/// The arguments of packed_linear() (products/packed_linear.h).
struct PackedLinearCall {
  Array x;  ///< (..., k): float16 or bfloat16; float32 by way of numbers
  PackedWeights weights;
  ProductEpilogue epilogue{};     ///< as LinearCall has it
  SkinnyPlan plan{};              ///< zeros are chosen
  std::optional<Array> out{};     ///< as LinearCall has it
  std::optional<RowNorm> norm{};  ///< as LinearCall has it
};

// ---- for the sources of this folder

/// As in packed_arrays.cuh.
struct PackedArrays {
  std::array<CUdeviceptr, PackedWeights::kParts> parts{};
  std::uint32_t rows = 0, k = 0, blocks = 0, tile_rows = 1, tile_blocks = 1, tiles_across = 1,
                shift = 0;
};
PackedArrays packed_arrays(const PackedWeights& weights);
/// Bytes of two blocks of a tile, as PackedStage in packed_product.cu.
std::int64_t packed_stage_bytes(const PackedWeights& weights);
/// "Packed<...>", with pairs of `type`.
std::string packed_device_format(const PackedWeights& weights, ScalarType type);
/// A different number for each device format, in kPackedKeyBits.
std::uint64_t packed_key(const PackedWeights& weights);
inline constexpr int kPackedKeyBits = 15;

}  // namespace kernwright::kernels
