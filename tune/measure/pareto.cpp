// The Pareto front: rows by their first column, each against the front so far.
#include "tune/measure/pareto.h"

#include "base/errors.h"
#include "base/format.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace kernwright {
namespace {

using Columns = std::span<const std::vector<double>>;

bool has_nan(Columns columns, std::size_t row) {
  return std::any_of(columns.begin(), columns.end(),
                     [row](const auto& column) { return std::isnan(column[row]); });
}

/// Whether `a` is nowhere larger than `b` and somewhere smaller.
bool beats(Columns columns, std::size_t a, std::size_t b) {
  bool is_smaller = false;
  for (const std::vector<double>& column : columns) {
    if (column[a] > column[b]) return false;
    is_smaller |= column[a] < column[b];
  }
  return is_smaller;
}

/// Order by all columns: a row comes before every row that it beats.
bool comes_before(Columns columns, std::size_t a, std::size_t b) {
  for (const std::vector<double>& column : columns) {
    if (column[a] != column[b]) return column[a] < column[b];
  }
  return a < b;
}

}  // namespace

std::vector<std::size_t> pareto_front(Columns columns) {
  if (columns.empty()) throw InvalidArgument("a Pareto front of no column");
  const std::size_t count = columns.front().size();
  for (const std::vector<double>& column : columns) {
    if (column.size() != count) {
      throw InvalidArgument(
          format("a Pareto front of columns with {} and {} rows: the counts must "
                 "be equal",
                 count, column.size()));
    }
  }
  std::vector<std::size_t> rows;
  for (std::size_t row = 0; row < count; ++row) {
    if (!has_nan(columns, row)) rows.push_back(row);
  }
  std::sort(rows.begin(), rows.end(),
            [&](std::size_t a, std::size_t b) { return comes_before(columns, a, b); });
  std::vector<std::size_t> front;
  for (const std::size_t row : rows) {
    const bool is_beaten = std::any_of(front.begin(), front.end(),
                                       [&](std::size_t f) { return beats(columns, f, row); });
    if (!is_beaten) front.push_back(row);
  }
  std::sort(front.begin(), front.end());
  return front;
}

}  // namespace kernwright
