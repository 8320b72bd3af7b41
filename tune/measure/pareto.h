// The Pareto front of several objectives.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace kernwright {

/// Rows that no other row beats: none is at most as large in every column and smaller in one. Each
/// of `columns` has one number a row; all are minimised. Equal rows are all in the front; a row
/// with a NaN is not. Indices ascend. Throws InvalidArgument for columns of different lengths or
/// none.
std::vector<std::size_t> pareto_front(std::span<const std::vector<double>> columns);

}  // namespace kernwright
