// Weights in the formats that models are kept in: blocks of GGUF files, 4-bit codes with scales,
// float8 tiles, the words of GPTQ and AWQ. Work is queued on `stream`; all throw InvalidArgument.
#pragma once

#include "array/array.h"
#include "core/stream.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace kernwright::kernels {

/// Blocks of GGUF files, as ggml defines them.
struct GgufFormat {
  std::string_view name;  ///< "q4_k"
  const char* device;     ///< the name in gguf_blocks.cuh
  int values, bytes;      ///< of a block
  std::uint64_t align;    ///< of loads, where the first block allows it
  int type, file_type;    ///< the numbers of the format for a tensor and for a file, in files
};
inline constexpr auto kGgufFormats = std::array{
#define KW_GGUF(name, ...) GgufFormat{#name, __VA_ARGS__},
#include "kernels_src/formats/gguf_format.def"
#undef KW_GGUF
};
/// Throws InvalidArgument with a list of the known ones.
const GgufFormat& gguf_format(std::string_view name);

/// `blocks` is uint8: whole blocks along the last axis; numbers replace each block. `type` is
/// float16, bfloat16 or float32. float32 equals the result of ggml's dequantize_row functions.
Array dequantize_gguf(const Array& blocks, const GgufFormat& format, ScalarType type,
                      const Stream& stream = {});
/// Numbers to blocks: the last axis holds whole blocks. q4_0, q4_1, q5_0, q5_1 and q8_0 round as
/// ggml's reference does. q2_k, q4_k and q5_k scale a group from the lowest value (at most 0) to
/// the highest, all further formats by the value of largest magnitude; scales round to nearest,
/// then the codes. NaN counts as 0; a block with an infinity decodes to NaN and infinities.
Array quantize_gguf(const Array& x, const GgufFormat& format, const Stream& stream = {});

enum class CodeFormat : std::uint8_t { nf4, mxfp4, nvfp4, fp4 };

/// Numbers of 4-bit codes, two a byte, times the scale of their block. `scales`: of nf4 and fp4
/// absmax in float32, or with double quantisation codes, table, absmax and offset; of mxfp4 the
/// exponents in uint8; of nvfp4 float8_e4m3fn scales and one float32 for all. The result has
/// `shape`.
Array dequantize_codes(const Array& codes, const std::vector<Array>& scales, CodeFormat format,
                       std::int64_t block, const Shape& shape, ScalarType type,
                       const Stream& stream = {});
/// Codes and scales, of `codes_shape` and `scales_shape`; `factor` is nvfp4's number for all.
std::pair<Array, Array> quantize_codes(const Array& x, const std::optional<Array>& factor,
                                       CodeFormat format, std::int64_t block,
                                       const Shape& codes_shape, const Shape& scales_shape,
                                       const Stream& stream = {});

/// float8 times the float32 scale of the tile; the last two axes are cut into tiles, and a
/// remainder is a tile as well.
Array dequantize_tiles(const Array& values, const Array& scales, std::array<std::int64_t, 2> tile,
                       ScalarType type, const Stream& stream = {});
/// (float8_e4m3fn, scales): a scale is the largest magnitude of the tile over 448.
std::pair<Array, Array> quantize_tiles(const Array& x, std::array<std::int64_t, 2> tile,
                                       const Stream& stream = {});

/// scale * (code - zero - zero_offset) of int32 words: `codes` (rows / 8, columns), `zeros`
/// (groups, columns / 8), `scales` (groups, columns). `groups` gives each row's group; without it
/// rows are cut into equal groups in order. A row whose group there is not becomes NaN.
Array dequantize_gptq(const Array& codes, const Array& zeros, const Array& scales,
                      const std::optional<Array>& groups, int zero_offset, ScalarType type,
                      const Stream& stream = {});
/// scale * (code - zero): `codes` (rows, columns / 8), `zeros` (groups, columns / 8), `scales`
/// (groups, columns); a word holds columns in the order 0, 2, 4, 6, 1, 3, 5, 7.
Array dequantize_awq(const Array& codes, const Array& zeros, const Array& scales, ScalarType type,
                     const Stream& stream = {});

/// The low 4 bits of integers, two in a byte along the last axis, the first in the low half; with
/// an odd extent the last byte has a high half of 0. The result is uint8.
Array pack_nibbles(const Array& x, const Stream& stream = {});
/// The other way round, as int8 or uint8; `length` is the extent of the last axis (below 0: even).
Array unpack_nibbles(const Array& packed, bool is_signed, std::int64_t length,
                     const Stream& stream = {});

}  // namespace kernwright::kernels
