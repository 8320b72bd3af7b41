// Checks and launches of binary search.
#include "kernels_src/sort/search.h"

#include "array/shape.h"
#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"
#include "kernels_src/family.h"
#include "kernels_src/sort/search.cu.h"
#include "kernels_src/sort/sort.h"

namespace kernwright::kernels {

namespace {

enum class SearchKernel : std::uint8_t { left, right, members };

const LazyKernel& search_kernel(SearchKernel part, ScalarType type) {
  static const auto& family = *new Family("search.cu", text::search_cu);
  return family.instance(InstanceKey().add(part, 2).type(type), [&] {
    if (part == SearchKernel::members) return format("find_members<{}>", device_type(type));
    return format("search_sorted<{}, {}>", device_type(type), part == SearchKernel::right);
  });
}

void require_one_type(const Array& a, const Array& b) {
  require_one_device(a, b);
  if (a.type() == b.type()) return;
  throw InvalidArgument(
      format("both arrays must be of one type, got {} and {}; cast one with "
             ".astype()",
             scalar_name(a.type()), scalar_name(b.type())));
}

void require_sorter(const Array& sorted, const Array& sorter) {
  require_one_device(sorted, sorter);
  if (sorter.shape() == sorted.shape() && sorter.type() == ScalarType::int64) return;
  throw InvalidArgument(
      format("Incompatible dimensions: a sorter is int64 of the shape {} of what "
             "it sorts, got {} of shape {}",
             shape_to_string(sorted.shape()), scalar_name(sorter.type()),
             shape_to_string(sorter.shape())));
}

}  // namespace

Array search_sorted(const Array& sorted, const Array& wanted, bool right,
                    const std::optional<Array>& sorter, const Stream& stream) {
  require_order(sorted, "searchsorted");
  require_one_type(sorted, wanted);
  if (sorted.ndim() != 1) {
    throw InvalidArgument(format("searchsorted() looks in an array of one dimension, got shape {}",
                                 shape_to_string(sorted.shape())));
  }
  if (sorter) require_sorter(sorted, *sorter);
  Device& device = sorted.device();
  Array made = Array::empty(device, wanted.shape(), ScalarType::int64, stream);
  if (made.size() == 0) return made;
  const Stream on = stream ? stream : Stream::legacy(device);
  const Array in = without_gaps(sorted, stream);
  const Array keys = without_gaps(wanted, stream);
  const Array places = sorter ? without_gaps(*sorter, stream) : Array();
  launch(
      search_kernel(right ? SearchKernel::right : SearchKernel::left, key_bits_type(sorted.type()))
          .on(device),
      spread(device, made.size(), on), in.address(), places.address(), in.size(), keys.address(),
      made.address(), made.size(), device_order(sorted.type()));
  use_all_on(on, {&in, &keys, &places, &made});
  return made;
}

Array is_in(const Array& array, const Array& among, bool invert, const Stream& stream) {
  require_order(array, "isin");
  require_one_type(array, among);
  Device& device = array.device();
  Array made = Array::empty(device, array.shape(), ScalarType::boolean, stream);
  if (made.size() == 0) return made;
  const Stream on = stream ? stream : Stream::legacy(device);
  const Array flat = without_gaps(among, stream).reshape({among.size()});
  const Array sorted = sort(flat, 0, false, stream);
  const Array wanted = without_gaps(array, stream);
  launch(search_kernel(SearchKernel::members, key_bits_type(array.type())).on(device),
         spread(device, made.size(), on), sorted.address(), sorted.size(), wanted.address(),
         made.address(), made.size(), static_cast<std::int32_t>(invert),
         device_order(array.type()));
  use_all_on(on, {&sorted, &wanted, &made});
  return made;
}

}  // namespace kernwright::kernels
