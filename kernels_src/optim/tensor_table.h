// Tensors of equal types, in tables that fit a kernel's parameters.
#pragma once

#include "array/array.h"

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace kernwright::kernels {

inline constexpr std::size_t kTableTensors = 48;
inline constexpr std::uint64_t kTableChunk = 8192;

/// As the kernels of optimizer.cu have it.
struct TensorTable {
  std::array<CUdeviceptr, kTableTensors> param, first, second, third, master, grad;
  std::array<std::uint64_t, kTableTensors> size;
  std::array<std::uint32_t, kTableTensors> block_end, number;
  std::int32_t count;
};

/// Calls launch(table, members) for each table of the tensors of `group`, whose sizes are those of
/// `sizes`; fill(table, slot, tensor) enters the addresses. Tensors of no elements are left out.
void for_each_table(std::span<const std::size_t> group, const std::vector<Array>& sizes,
                    const std::function<void(TensorTable&, std::size_t, std::size_t)>& fill,
                    const std::function<void(const TensorTable&)>& launch);

/// The width of the packs in which all these arrays can be read: 16 bytes of the largest type, up
/// to 4 elements, or single elements.
int table_width(std::span<const Array* const> arrays);

}  // namespace kernwright::kernels
