// Cuts lists of tensors into tables.
#include "kernels_src/optim/tensor_table.h"

#include "base/math.h"

#include <algorithm>

namespace kernwright::kernels {

void for_each_table(std::span<const std::size_t> group, const std::vector<Array>& sizes,
                    const std::function<void(TensorTable&, std::size_t, std::size_t)>& fill,
                    const std::function<void(const TensorTable&)>& launch) {
  constexpr std::uint64_t kMostTableBlocks = (std::uint64_t{1} << 31) - 1;
  TensorTable table{};
  std::uint64_t blocks = 0;
  const auto send = [&] {
    if (table.count > 0) launch(table);
    table = TensorTable{};
    blocks = 0;
  };
  for (const std::size_t tensor : group) {
    const auto size = static_cast<std::uint64_t>(sizes[tensor].size());
    if (size == 0) continue;
    const std::uint64_t more = ceil_div(size, kTableChunk);
    if (table.count == static_cast<std::int32_t>(kTableTensors) || blocks + more > kMostTableBlocks)
      send();
    const auto slot = static_cast<std::size_t>(table.count);
    blocks += more;
    fill(table, slot, tensor);
    table.number[slot] = static_cast<std::uint32_t>(tensor);
    table.size[slot] = size;
    table.block_end[slot] = static_cast<std::uint32_t>(blocks);
    ++table.count;
  }
  send();
}

int table_width(std::span<const Array* const> arrays) {
  std::size_t largest = 4;
  for (const Array* const each : arrays) largest = std::max(largest, scalar_size(each->type()));
  const std::size_t width = 16 / largest;
  const bool fits = std::all_of(arrays.begin(), arrays.end(), [&](const Array* each) {
    return each->address() % (width * scalar_size(each->type())) == 0;
  });
  return fits ? static_cast<int>(width) : 1;
}

}  // namespace kernwright::kernels
