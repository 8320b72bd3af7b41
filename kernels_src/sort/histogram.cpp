// Launches of counting, and of sums by a stable sort.
#include "kernels_src/sort/histogram.h"

#include "array/shape.h"
#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"
#include "kernels_src/cast/cast.h"
#include "kernels_src/family.h"
#include "kernels_src/sort/histogram.cu.h"
#include "kernels_src/sort/sort.h"
#include "memory/transfer.h"

#include <algorithm>

namespace kernwright::kernels {

namespace {

constexpr std::int64_t kCountedTile = 16 * kSortBlock;

/// As in the text of the kernels.
struct DeviceValueBins {
  std::int64_t count;
};
struct DeviceEdgeBins {
  std::int64_t count;
  CUdeviceptr edges;
  double scale;
};

enum class HistogramKernel : std::uint8_t {
  extremes,
  count_values,
  count_bins,
  write_bins,
  sum,
  parts,
  density
};

const LazyKernel& histogram_kernel(HistogramKernel part, ScalarType type) {
  static const auto& family = *new Family("histogram.cu", text::histogram_cu);
  return family.instance(InstanceKey().add(part, 3).type(type), [&]() -> std::string {
    const char* const element = device_type(type);
    switch (part) {
      case HistogramKernel::extremes:
        return format("find_extremes<{}>", element);
      case HistogramKernel::count_values:
        return format("count_bins<{}, ValueBins>", element);
      case HistogramKernel::count_bins:
        return format("count_bins<{}, EdgeBins>", element);
      case HistogramKernel::write_bins:
        return format("write_bins<{}, EdgeBins>", element);
      case HistogramKernel::sum:
        return format("sum_weights<{}>", element);
      case HistogramKernel::density:
        return format("scale_to_density<{}>", element);
      case HistogramKernel::parts:
        break;
    }
    return "sum_parts";
  });
}

DeviceEdgeBins device_bins(const Bins& bins) {
  return {.count = bins.edges.size() - 1, .edges = bins.edges.address(), .scale = bins.scale};
}

template <typename DeviceBins>
Array add_counts(const Array& array, const DeviceBins& bins, HistogramKernel part,
                 const Stream& stream) {
  Device& device = array.device();
  Array counts = Array::empty(device, {bins.count}, ScalarType::int64, stream);
  if (bins.count == 0) return counts;
  const Stream on = stream ? stream : Stream::legacy(device);
  fill(device, counts.address(), 0, 8, static_cast<std::size_t>(bins.count), on);
  counts.use_on(on);
  if (array.size() == 0) return counts;
  const Array flat = without_gaps(array, stream);
  const Chunks chunks = make_chunks(device, array.size(), kCountedTile);
  launch(histogram_kernel(part, array.type()).on(device), block_config(chunks.count, on),
         flat.address(), array.size(), chunks.size, bins, counts.address());
  use_all_on(on, {&flat, &counts});
  return counts;
}

void require_integers(const Array& array, const char* function) {
  const ScalarType type = array.type();
  if (type == ScalarType::boolean || is_signed_integer(type) || is_unsigned_integer(type)) return;
  throw ArgumentError(format("{}() counts integers, got {}; cast it with .astype(\"int64\")",
                             function, array.identify()));
}

void require_weights(const Array& array, const Array& weights) {
  require_one_device(array, weights);
  if (weights.shape() == array.shape() && weights.type() == ScalarType::float64) return;
  throw InvalidArgument(
      format("Incompatible dimensions: weights must be float64 of shape {}, got "
             "{} of shape {}",
             shape_to_string(array.shape()), scalar_name(weights.type()),
             shape_to_string(weights.shape())));
}

/// The narrowest unsigned type that holds numbers up to `largest`: a sort has a pass for each byte.
ScalarType narrowest(std::int64_t largest) {
  if (largest < 1 << 8) return ScalarType::uint8;
  if (largest < 1 << 16) return ScalarType::uint16;
  return largest < std::int64_t{1} << 32 ? ScalarType::uint32 : ScalarType::int64;
}

/// Sums of weights; `numbers` has values from 0 to `largest` only.
Array sum_groups(const Array& numbers, std::int64_t largest, const Array& weights,
                 std::int64_t bins, const Stream& stream) {
  Device& device = numbers.device();
  Array sums = Array::empty(device, {bins}, ScalarType::float64, stream);
  if (bins == 0) return sums;
  const Stream on = stream ? stream : Stream::legacy(device);
  const std::int64_t size = numbers.size();
  const Array narrow = cast(numbers, narrowest(largest), stream).reshape({size});
  const Ordered sorted = sort_and_index(narrow, 0, false, stream);
  const Array flat = without_gaps(weights, stream);
  const std::int64_t warps = std::int64_t{multiprocessors(device)} * 32;
  const auto parts =
      static_cast<std::int32_t>(std::clamp(warps / bins, std::int64_t{1}, std::int64_t{256}));
  const Array pieces =
      parts > 1 ? Array::empty(device, {bins, parts}, ScalarType::float64, stream) : sums;
  launch(histogram_kernel(HistogramKernel::sum, narrow.type()).on(device),
         spread(device, bins * parts * 32, on), sorted.values.address(), sorted.indices.address(),
         flat.address(), size, bins, parts, pieces.address());
  if (parts > 1) {
    launch(histogram_kernel(HistogramKernel::parts, ScalarType::float64).on(device),
           spread(device, bins, on), pieces.address(), sums.address(), bins, parts);
  }
  use_all_on(on, {&sorted.values, &sorted.indices, &flat, &pieces, &sums});
  return sums;
}

}  // namespace

Array extremes(const Array& array, const Stream& stream) {
  require_order(array, "extremes");
  if (array.size() == 0) {
    throw InvalidArgument(format("an {} has no lowest and no highest element", array.identify()));
  }
  Device& device = array.device();
  const Stream on = stream ? stream : Stream::legacy(device);
  Array from = without_gaps(array, stream);
  for (;;) {
    const Chunks chunks = make_chunks(device, from.size(), kCountedTile);
    Array found = Array::empty(device, {2 * chunks.count}, array.type(), stream);
    launch(histogram_kernel(HistogramKernel::extremes, key_bits_type(array.type())).on(device),
           block_config(chunks.count, on), from.address(), from.size(), chunks.size,
           found.address(), device_order(array.type()));
    use_all_on(on, {&from, &found});
    if (chunks.count == 1) return found;
    from = found;
  }
}

Array count_values(const Array& array, std::int64_t bins, const Stream& stream) {
  require_integers(array, "bincount");
  return add_counts(array, DeviceValueBins{bins}, HistogramKernel::count_values, stream);
}

Array sum_by_value(const Array& array, const Array& weights, std::int64_t bins,
                   const Stream& stream) {
  require_integers(array, "bincount");
  require_weights(array, weights);
  return sum_groups(array, std::max(bins - 1, std::int64_t{0}), weights, bins, stream);
}

Array histogram(const Array& array, const Bins& bins, const Stream& stream) {
  require_order(array, "histogram");
  require_one_device(array, bins.edges);
  const Array edges = without_gaps(bins.edges, stream);
  Array counts =
      add_counts(array, device_bins({edges, bins.scale}), HistogramKernel::count_bins, stream);
  edges.use_on(stream ? stream : Stream::legacy(array.device()));
  return counts;
}

Array weighted_histogram(const Array& array, const Array& weights, const Bins& bins,
                         const Stream& stream) {
  require_order(array, "histogram");
  require_weights(array, weights);
  require_one_device(array, bins.edges);
  Device& device = array.device();
  const Stream on = stream ? stream : Stream::legacy(device);
  const Array flat = without_gaps(array, stream);
  const Array edges = without_gaps(bins.edges, stream);
  const Array numbers = Array::empty(device, array.shape(), ScalarType::int64, stream);
  const std::int64_t count = edges.size() - 1;
  if (array.size() > 0) {
    launch(histogram_kernel(HistogramKernel::write_bins, array.type()).on(device),
           spread(device, array.size(), on), flat.address(), array.size(),
           device_bins({edges, bins.scale}), numbers.address());
    use_all_on(on, {&flat, &edges, &numbers});
  }
  return sum_groups(numbers, count, weights, count, stream);
}

Array density(const Array& counts, const Bins& bins, const Stream& stream) {
  Device& device = counts.device();
  const Stream on = stream ? stream : Stream::legacy(device);
  const Array edges = without_gaps(bins.edges, stream);
  Array made = Array::empty(device, counts.shape(), ScalarType::float64, stream);
  if (made.size() == 0) return made;
  launch(histogram_kernel(HistogramKernel::density, counts.type()).on(device), block_config(1, on),
         counts.address(), edges.address(), made.address(), counts.size());
  use_all_on(on, {&counts, &edges, &made});
  return made;
}

}  // namespace kernwright::kernels
