// Running sums, products and extremes of arrays along an axis.
#pragma once

#include "array/array.h"
#include "core/stream.h"

#include <optional>
#include <string_view>

namespace kernwright::kernels {

enum class Scan : std::uint8_t { sum, prod, max, min };

/// "cumulative_sum" ..., for messages; the other way round nothing for an unknown name.
std::string_view scan_name(Scan op) noexcept;
std::optional<Scan> scan_from_name(std::string_view name) noexcept;

struct ScanCall {
  Scan op = Scan::sum;
  int axis = -1;
  bool initial = false;  ///< the result of no elements comes first: one more along the axis
  std::optional<ScalarType> type;  ///< sum, prod: elements are taken as this
};

/// The running results along one axis of `array` (any strides), as an array of its own memory:
/// result i is that of the elements up to i. Types as of reductions: 64 bits for sums and products
/// of integers, which wrap around; max and min keep the type, NaN wins from where it is on.
/// Stretches longer than a warp's are carried in double for floats. The order of additions hangs on
/// the shape alone: the same array gives the same bits. Long rows are read once and written once.
/// Queued on `stream` (empty: the device's legacy stream). Throws InvalidArgument for an axis
/// outside the array and for extremes of complex numbers; CompileError, OutOfMemory, DriverError.
Array scan(const Array& array, const ScanCall& call, const Stream& stream = {});

/// The same into an array of the result's shape and type, any strides. Throws InvalidArgument, with
/// both, when it does not fit.
void write_scan(const Array& to, const Array& array, const ScanCall& call,
                const Stream& stream = {});

}  // namespace kernwright::kernels
