// Counts on the device, the sum on the host, writes on the device.
#include "kernels_src/sort/compaction.h"

#include "array/shape.h"
#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"
#include "kernels_src/family.h"
#include "kernels_src/sort/compaction.cu.h"

#include <algorithm>
#include <array>
#include <bit>

namespace kernwright::kernels {

namespace {

constexpr int kSplitDims = 8;

/// As in the text of the kernels.
struct SplitExtents {
  std::int64_t extent[kSplitDims];
  std::int64_t below;
  std::int32_t ndim;
};

enum class CompactionKernel : std::uint8_t { count, write, gather, split };

const char* compaction_unit(int log2_unit) {
  constexpr std::array names = {"UInt8", "UInt16", "UInt32", "UInt64", "Complex128"};
  return names[static_cast<std::size_t>(log2_unit)];
}

const LazyKernel& compaction_kernel(CompactionKernel part, ScalarType type, int pack,
                                    int log2_unit) {
  static const auto& family = *new Family("compaction.cu", text::compaction_cu);
  const auto key = InstanceKey().add(part, 2).type(type).add(pack, 5).add(log2_unit, 3);
  return family.instance(key, [&]() -> std::string {
    switch (part) {
      case CompactionKernel::count:
        return format("count_set<{}, {}>", device_type(type), pack);
      case CompactionKernel::write:
        return format("write_set<{}, {}, {}>", device_type(type), pack, compaction_unit(log2_unit));
      case CompactionKernel::gather:
        return format("gather_rows<{}>", compaction_unit(log2_unit));
      case CompactionKernel::split:
        break;
    }
    return "split_places";
  });
}

/// The type under which the kernels take elements, and the bits of a set one.
ScalarType mask_type(ScalarType type) {
  return type == ScalarType::complex128 ? type : key_bits_type(type);
}
std::uint64_t mask_bits(ScalarType type) {
  if (type == ScalarType::complex64) return 0x7fff'ffff'7fff'ffff;
  const std::uint64_t all = ~std::uint64_t{0};
  return is_floating(type) ? ~(std::uint64_t{1} << (8 * scalar_size(type) - 1)) : all;
}

/// A mask without gaps, its chunks and how many elements are set in each.
struct Counted {
  Array mask;
  int pack = 1;
  Chunks chunks;
  Array counts;
  std::int64_t total = 0;
  Stream on;
};

Counted count_set(const Array& array, const Stream& stream) {
  Counted made{.mask = without_gaps(array, stream), .chunks = {}, .counts = {}, .on = {}};
  if (array.size() == 0) return made;
  Device& device = array.device();
  made.on = stream ? stream : Stream::legacy(device);
  const bool aligned = made.mask.address() % 16 == 0;
  made.pack = aligned ? static_cast<int>(16 / scalar_size(array.type())) : 1;
  made.chunks = make_chunks(device, array.size(), kSortBlock * made.pack);
  made.counts = Array::empty(device, {made.chunks.count}, ScalarType::int64, stream);
  const LaunchConfig config = block_config(made.chunks.count, made.on);
  launch(
      compaction_kernel(CompactionKernel::count, mask_type(array.type()), made.pack, 0).on(device),
      config, made.mask.address(), array.size(), made.chunks.size, made.counts.address(),
      mask_bits(array.type()));
  made.mask.use_on(made.on);
  made.counts.use_on(made.on);
  made.total = sum_on_host(made.counts, stream);
  return made;
}

/// Writes places, or elements of 2^log2_unit bytes from `from` to `to`.
void write_set(const Counted& counted, CUdeviceptr places, CUdeviceptr from, CUdeviceptr to,
               int log2_unit) {
  Device& device = counted.mask.device();
  const LaunchConfig config = block_config(counted.chunks.count, counted.on);
  launch(compaction_kernel(CompactionKernel::write, mask_type(counted.mask.type()), counted.pack,
                           log2_unit)
             .on(device),
         config, counted.mask.address(), counted.mask.size(), counted.chunks.size,
         counted.counts.address(), places, from, to, mask_bits(counted.mask.type()));
  counted.mask.use_on(counted.on);
  counted.counts.use_on(counted.on);
}

Array list_places(const Counted& counted, const Stream& stream) {
  Array places = Array::empty(counted.mask.device(), {counted.total}, ScalarType::int64, stream);
  if (counted.total == 0) return places;
  write_set(counted, places.address(), 0, 0, 0);
  places.use_on(counted.on);
  return places;
}

/// Whole parts of an array, each of `inner` elements.
void gather_parts(const Array& array, const Array& places, const Array& to, std::int64_t inner,
                  const Stream& on) {
  const auto size = static_cast<std::int64_t>(scalar_size(array.type()));
  const auto bits = static_cast<std::uint64_t>(inner * size) | array.address() | to.address() | 16;
  const int log2_unit = std::countr_zero(bits);
  const std::int64_t units = (inner * size) >> log2_unit;
  const std::int64_t all = places.size() * units;
  launch(compaction_kernel(CompactionKernel::gather, ScalarType::boolean, 0, log2_unit)
             .on(array.device()),
         spread(array.device(), all, on), array.address(), places.address(), to.address(), all,
         units);
  places.use_on(on);
}

void require_mask(const Array& array, const Array& mask) {
  if (mask.type() != ScalarType::boolean) {
    throw ArgumentError(
        format("a mask is an array of bool, got {}; compare, or cast it with .astype(bool)",
               mask.identify()));
  }
  require_one_device(array, mask);
  const bool fits = mask.ndim() <= array.ndim() &&
                    std::equal(mask.shape().begin(), mask.shape().end(), array.shape().begin());
  if (fits) return;
  throw InvalidArgument(
      format("Incompatible dimensions: a mask of shape {} for an array of shape {}; it must have "
             "the extents of the first dimensions of the array",
             shape_to_string(mask.shape()), shape_to_string(array.shape())));
}

}  // namespace

Array flatnonzero(const Array& array, const Stream& stream) {
  return list_places(count_set(array, stream), stream);
}

Array nonzero(const Array& array, bool by_element, const Stream& stream) {
  const Counted counted = count_set(array, stream);
  const std::int64_t ndim = array.ndim(), total = counted.total;
  const Array places = list_places(counted, stream);
  if (ndim == 1) return places.reshape(by_element ? Shape{total, 1} : Shape{1, total});
  Device& device = array.device();
  Array made = Array::empty(device, by_element ? Shape{total, ndim} : Shape{ndim, total},
                            ScalarType::int64, stream);
  if (made.size() == 0) return made;
  const std::int64_t item = by_element ? ndim : 1;
  const std::int64_t dim = by_element ? 1 : total;
  SplitExtents part{};
  part.below = 1;
  for (std::int64_t inner = ndim - 1; inner >= 0; inner -= kSplitDims) {
    part.ndim = static_cast<std::int32_t>(std::min<std::int64_t>(inner + 1, kSplitDims));
    for (int d = 0; d < part.ndim; ++d)
      part.extent[d] = array.shape()[static_cast<std::size_t>(inner - d)];
    const CUdeviceptr to = made.address() + static_cast<CUdeviceptr>(inner * dim * 8);
    launch(compaction_kernel(CompactionKernel::split, ScalarType::boolean, 0, 0).on(device),
           spread(device, total, counted.on), places.address(), to, total, item, dim, part);
    for (int d = 0; d < part.ndim; ++d) part.below *= part.extent[d];
  }
  places.use_on(counted.on);
  made.use_on(counted.on);
  return made;
}

Array compress(const Array& array, const Array& mask, const Stream& stream) {
  require_mask(array, mask);
  const Counted counted = count_set(mask, stream);
  Shape shape(array.shape().begin() + mask.ndim(), array.shape().end());
  const std::int64_t inner = element_count(shape);
  shape.insert(shape.begin(), counted.total);
  Array made = Array::empty(array.device(), shape, array.type(), stream);
  if (made.size() == 0) return made;
  const Array from = without_gaps(array, stream);
  if (inner == 1) {
    write_set(counted, 0, from.address(), made.address(),
              std::countr_zero(scalar_size(array.type())));
  } else {
    gather_parts(from, list_places(counted, stream), made, inner, counted.on);
  }
  from.use_on(counted.on);
  made.use_on(counted.on);
  return made;
}

}  // namespace kernwright::kernels
