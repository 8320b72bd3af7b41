// Arrays of tokens' heads as kernels over tokens take them.
#pragma once

#include "array/array.h"
#include "core/launch/launch_config.h"
#include "core/stream.h"

#include <cstdint>
#include <optional>

namespace kernwright::kernels {

/// TokenStrides of tokens.cuh, in elements.
struct TokenStrides {
  std::int64_t batch = 0, token = 0, head = 0;
};

/// TokenArray of tokens.cuh.
struct TokenArray {
  CUdeviceptr from = 0, to = 0;
  TokenStrides from_strides{}, to_strides{};
  std::int32_t heads = 0;
};

/// Positions of tokens.cuh.
struct Positions {
  CUdeviceptr ids = 0;
  std::int64_t batch_stride = 0, offset = 0;
  std::uint32_t batches = 0, tokens = 0;
};

/// (batch, token, head, dim), or with `heads_first` (batch, head, token, dim); the batch may be
/// missing. Those of a head are contiguous, if need be in a copy.
struct TokenView {
  Array array;
  std::int64_t batches = 1, tokens = 0, heads = 0, dim = 0;
  TokenStrides strides{};

  /// Strides in bytes and the address, of which the width of accesses must be a divisor.
  std::uint64_t bits() const;
};
/// Throws InvalidArgument, with `name`, unless the array has three or four dimensions.
TokenView token_view(const Array& array, const char* name, bool heads_first, const Stream& stream);

/// The view of an array that is written to: the array is never copied. Throws InvalidArgument, with
/// `function` and `name`, unless the elements of a head lie side by side.
TokenView token_target(const Array& array, const char* function, const char* name,
                       bool heads_first);

/// A new array of the same shape, but for heads of `dim` elements, and its view.
TokenView token_result(const TokenView& like, const Array& array, bool heads_first,
                       std::int64_t dim, const Stream& stream);

/// The positions of tokens: ids of int32 or int64, of shape (tokens,) or (batch, tokens), or none.
struct PositionArgument {
  std::optional<Array> ids = std::nullopt;
  std::int64_t offset = 0;
};
/// As the kernels take it; `ids` is then contiguous. Throws ArgumentError and InvalidArgument for
/// ids that do not fit `view`.
Positions require_positions(PositionArgument& argument, const TokenView& view,
                            const Stream& stream);
/// The type of the ids, int64 where there are none.
ScalarType position_type(const PositionArgument& argument);

/// Blocks of 256 threads over tokens with `items` shares each.
struct TokenGrid {
  std::uint32_t tokens_each = 1;
  LaunchConfig config{};
};
TokenGrid token_grid(std::int64_t tokens, std::int64_t items, const Stream& stream);

}  // namespace kernwright::kernels
