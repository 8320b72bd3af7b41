// The Pareto front of several objectives.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace kernwright {

/// The Pareto front: rows not beaten by another row. A row beats another if it is at most as large
/// in every column and smaller in one. Each of `columns` has one number a row; all are minimised.
/// Equal rows are all in the front; a row with a NaN is not. Indices ascend. Throws InvalidArgument
/// for no columns, or for columns of different lengths.
std::vector<std::size_t> pareto_front(std::span<const std::vector<double>> columns);

}  // namespace kernwright
