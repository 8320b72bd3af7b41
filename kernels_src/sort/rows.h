// Arrays as rows along one axis, and what the functions of this folder share.
#pragma once

#include "array/array.h"
#include "core/launch/launch_config.h"
#include "core/stream.h"

#include <cstdint>
#include <initializer_list>

namespace kernwright::kernels {

/// Elements and where they were, of the same shape.
struct Ordered {
  Array values;
  Array indices;  ///< int64
};

/// `count` rows of `length` elements, one behind another without gaps.
struct Rows {
  Array data;  ///< the axis is the last one
  std::int64_t count = 0;
  std::int64_t length = 0;
  int axis = 0;  ///< where it was
};

/// A view where the axis is the last one and nothing has gaps, else a copy on `stream`. Throws
/// InvalidArgument for an axis outside.
Rows rows_along(const Array& array, int axis, const Stream& stream);

/// The other way: `rows` has the axis last, the result, row-major, at `axis`.
Array from_rows(const Array& rows, int axis, const Stream& stream);

/// The array itself where it has no gaps, else a copy on `stream`.
Array without_gaps(const Array& array, const Stream& stream);

/// Throws ArgumentError, which names `function`, for complex numbers: they have no order.
void require_order(const Array& array, const char* function);

/// Throws InvalidArgument ("same device") unless both are on one device.
void require_one_device(const Array& a, const Array& b);

int multiprocessors(const Device& device);

/// As in order.cuh: how numbers of a type are ordered.
struct DeviceOrder {
  std::uint64_t nan = 0, sign = 0, flip = 0, turned = 0;
};
DeviceOrder device_order(ScalarType type, bool descending = false);
/// The unsigned integer of the size of `type`, as which the kernels of order take it.
ScalarType key_bits_type(ScalarType type);

/// Threads of a block in all kernels of this folder.
inline constexpr std::int64_t kSortBlock = 256;

/// A launch of so many blocks.
LaunchConfig block_config(std::int64_t count, const Stream& stream);
/// Enough blocks for `count` threads, or what keeps the device busy: their threads go on in steps.
LaunchConfig spread(const Device& device, std::int64_t count, const Stream& stream);

/// Elements in blocks that each take one chunk of them: a multiple of `tile`.
struct Chunks {
  std::int64_t size = 0;   ///< elements of a chunk
  std::int64_t count = 0;  ///< of chunks, at most 1024
};
Chunks make_chunks(const Device& device, std::int64_t elements, std::int64_t tile);

/// Array::use_on() for each; empty ones are passed over.
void use_all_on(const Stream& stream, std::initializer_list<const Array*> arrays);

/// The sum of `counts` (int64) on the host, after the work of `stream`. It blocks until then;
/// throws CaptureError while the stream is being captured.
std::int64_t sum_on_host(const Array& counts, const Stream& stream);

}  // namespace kernwright::kernels
