// What steps and sums of many tensors share: checks of lists, groups by type, launches of tables.
#pragma once

#include "array/array.h"
#include "core/launch/launch_config.h"
#include "core/stream.h"
#include "kernels_src/family.h"
#include "kernels_src/optim/tensor_table.h"

#include <cstddef>
#include <map>
#include <vector>

namespace kernwright::kernels {

/// The text optimizer.cu.
const Family& optimizer_family();

/// The inputs with the same instance.
struct OptimizerGroup {
  ScalarType param, grad, state;
  int width;
  bool operator<(const OptimizerGroup& o) const;
};
using OptimizerGroups = std::map<OptimizerGroup, std::vector<std::size_t>>;

/// Throws InvalidArgument unless `array` has the shape and device of `param`, and a type that
/// optimisers take. What is `written` must be contiguous.
void require_optimizer_tensor(const Array& array, const Array& param, const char* name,
                              std::size_t index, bool written);

/// The same of two lists of equal lengths, all on one device.
void require_optimizer_list(const std::vector<Array>& list, const std::vector<Array>& params,
                            const char* name, bool written);

/// Copies of the strided ones.
std::vector<Array> contiguous_tensors(const std::vector<Array>& arrays, const Stream& stream);

/// Tensors whose types and packs are equal; `to` stand for parameters and states, `from` for
/// gradients.
OptimizerGroups type_groups(const std::vector<Array>& to, const std::vector<Array>& from);

/// One block for each chunk of the table.
LaunchConfig table_config(const TensorTable& table, const Stream& on);

void use_tensors(const std::vector<Array>& arrays, const Stream& on);

}  // namespace kernwright::kernels
