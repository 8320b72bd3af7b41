// Embedding: rows of a table by their numbers, and the gradient of the table.
#pragma once

#include "array/array.h"
#include "core/stream.h"

#include <cstdint>
#include <optional>

namespace kernwright::kernels {

/// rows[i] = scale * table[ids[i]], of shape ids.shape + (D,) and the type of the table (V, D): any
/// real floating type. ids: int32 or int64, any shape. A number outside of [0, V) reads nothing and
/// gives zeros; with `check` the call waits for the device and throws InvalidArgument with the
/// first such id. Queued on `stream` (empty: the device's legacy stream). Throws ArgumentError for
/// further types, InvalidArgument for shapes that do not fit.
Array embedding(const Array& ids, const Array& table, double scale, bool check,
                const Stream& stream = {});

/// The gradient of the table (V, D) from the gradient of the rows: dtable[v] is the sum of scale *
/// dy[i] over all i with ids[i] == v, in the order of i, in float (float64: in double); zeros for
/// an unused v and for `padding`. Ids outside of the table are ignored. Every run gives equal bits:
/// ids are sorted stably on the device (radix sort as in D. Merrill, A. Grimshaw, 2011).
Array embedding_backward(const Array& dy, const Array& ids, std::int64_t vocabulary,
                         std::optional<std::int64_t> padding, double scale,
                         const Stream& stream = {});

}  // namespace kernwright::kernels
