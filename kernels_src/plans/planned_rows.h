// The rows that plans of a thread count on, so that rows have the same bits however many there are.
#pragma once

#include "kernels_src/plans/plan_scope.h"

#include <algorithm>
#include <cstdint>

namespace kernwright::kernels {

/// A batch of up to so many rows, most of which may be absent. Products of 16-bit elements, norms,
/// softmax, attention of decoding and sampling then sum up a row in an order that depends on
/// `most` alone, where Hopper's tensor cores take the products and `most` is kMostPlannedRows at
/// most.
struct PlannedRows {
  std::int64_t most = 0;
};
using PlannedRowsScope = PlanScope<PlannedRows>;

/// Of PlannedRows: accumulators of more rows of x meet in another order.
constexpr std::int64_t kMostPlannedRows = 32;

/// `rows`, or the rows of the scope that this thread is in.
inline std::int64_t planned_rows(std::int64_t rows) noexcept {
  const auto& planned = PlannedRowsScope::current();
  return planned ? std::max(rows, planned->most) : rows;
}

/// `sequences`, or of a scope what gives enough shares of a context to one and few enough to many.
inline std::int64_t planned_sequences(std::int64_t sequences) noexcept {
  constexpr std::int64_t kPlannedSequences = 4;
  return PlannedRowsScope::current() ? kPlannedSequences : sequences;
}

}  // namespace kernwright::kernels
