// Chooses how rows are sorted, and launches it.
#include "kernels_src/sort/sort.h"

#include "base/format.h"
#include "core/device.h"
#include "kernels_src/family.h"
#include "kernels_src/sort/radix_sort.cu.h"
#include "kernels_src/sort/row_sort.cu.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace kernwright::kernels {

namespace {

constexpr std::int64_t kSortItems = 16;
constexpr std::int64_t kSortTile = kSortItems * kSortBlock;
constexpr std::int64_t kSortDigits = 256;

enum class Wanted : std::uint8_t { values = 1, indices = 2, both = 3 };

bool is_wanted(Wanted wanted, Wanted part) {
  return (static_cast<int>(wanted) & static_cast<int>(part)) != 0;
}

const LazyKernel& row_kernel(ScalarType type, int items) {
  static const auto& family = *new Family("row_sort.cu", text::row_sort_cu);
  return family.instance(InstanceKey().type(type).add(items, 5), [&] {
    if (items == 0) return format("sort_short_rows<{}>", device_type(type));
    return format("sort_long_rows<{}, {}>", device_type(type), items);
  });
}

const Family& radix_family() {
  static const auto& family = *new Family("radix_sort.cu", text::radix_sort_cu);
  return family;
}

enum class RadixKernel : std::uint8_t { count, sum, move, move_narrow, move_wide };

const LazyKernel& radix_kernel(RadixKernel kernel, ScalarType type) {
  return radix_family().instance(InstanceKey().add(kernel, 3).type(type), [&]() -> std::string {
    const char* const element = device_type(type);
    switch (kernel) {
      case RadixKernel::count:
        return format("count_digits<{}, {}>", element, kSortItems);
      case RadixKernel::sum:
        return "sum_digits";
      case RadixKernel::move:
        return format("move_digits<{}, {}, false, UInt32>", element, kSortItems);
      case RadixKernel::move_narrow:
        return format("move_digits<{}, {}, true, UInt32>", element, kSortItems);
      case RadixKernel::move_wide:
        break;
    }
    return format("move_digits<{}, {}, true, Int64>", element, kSortItems);
  });
}

Ordered empty_results(const Rows& rows, std::int64_t keep, Wanted wanted, const Stream& stream) {
  Shape shape = rows.data.shape();
  shape.back() = keep;
  Device& device = rows.data.device();
  Ordered made;
  if (is_wanted(wanted, Wanted::values))
    made.values = Array::empty(device, shape, rows.data.type(), stream);
  if (is_wanted(wanted, Wanted::indices))
    made.indices = Array::empty(device, shape, ScalarType::int64, stream);
  return made;
}

void launch_short(const Rows& rows, std::int64_t keep, bool descending, const Ordered& to,
                  const Stream& on) {
  Device& device = rows.data.device();
  const auto length = static_cast<std::uint64_t>(rows.length);
  const auto segment = static_cast<std::int64_t>(std::bit_ceil(length));
  const std::int64_t spread_out = rows.count / (2 * multiprocessors(device)) + 1;
  const std::int64_t at_once = std::min(kShortRow / segment, spread_out);
  const LaunchConfig config = spread(device, (rows.count + at_once - 1) / at_once * kSortBlock, on);
  launch(row_kernel(bits_of(rows.data.type()), 0).on(device), config, rows.data.address(),
         to.values.address(), to.indices.address(), rows.count,
         static_cast<std::int32_t>(rows.length), static_cast<std::int32_t>(keep),
         static_cast<std::int32_t>(segment), static_cast<std::int32_t>(at_once),
         order_of(rows.data.type(), descending));
}

void launch_long(const Rows& rows, bool descending, const Ordered& to, const Stream& on) {
  Device& device = rows.data.device();
  const int items = rows.length > kSortTile / 2 ? kSortItems : kSortItems / 2;
  launch(row_kernel(bits_of(rows.data.type()), items).on(device),
         spread(device, rows.count * kSortBlock, on), rows.data.address(), to.values.address(),
         to.indices.address(), rows.count, static_cast<std::int32_t>(rows.length),
         order_of(rows.data.type(), descending));
}

/// A sort by several blocks a row: one pass for each byte of the elements.
class RadixSort {
 public:
  RadixSort(const Rows& rows, bool descending, const Stream& stream, const Stream& on);
  void run(const Ordered& to);

 private:
  struct Side {
    CUdeviceptr values = 0, numbers = 0;
  };
  void pass(int byte, const Side& from, const Side& to, CUdeviceptr indices, bool numbered);

  const Rows& rows_;
  Device& device_;
  DeviceOrder order_;
  ScalarType bits_;
  Stream stream_, on_;
  bool wide_;
  std::int64_t chunk_ = 0;
  std::int32_t chunks_ = 0;
  LaunchConfig blocks_;
  Array counts_, totals_;
};

RadixSort::RadixSort(const Rows& rows, bool descending, const Stream& stream, const Stream& on)
    : rows_(rows),
      device_(rows.data.device()),
      order_(order_of(rows.data.type(), descending)),
      bits_(bits_of(rows.data.type())),
      stream_(stream),
      on_(on),
      wide_(rows.length > std::numeric_limits<std::uint32_t>::max()) {
  const std::int64_t tiles = (rows.length + kSortTile - 1) / kSortTile;
  const std::int64_t target = std::int64_t{multiprocessors(device_)} * 4 / rows.count;
  const std::int64_t per_row = std::clamp(target, std::int64_t{1}, tiles);
  chunk_ = (tiles + per_row - 1) / per_row * kSortTile;
  chunks_ = static_cast<std::int32_t>((rows.length + chunk_ - 1) / chunk_);
  blocks_ = blocks_of(rows.count * chunks_, on);
  counts_ = Array::empty(device_, {rows.count, kSortDigits, chunks_}, ScalarType::int64, stream);
  totals_ = Array::empty(device_, {rows.count, kSortDigits}, ScalarType::int64, stream);
}

void RadixSort::pass(int byte, const Side& from, const Side& to, CUdeviceptr indices,
                     bool numbered) {
  const std::int32_t shift = 8 * byte;
  launch(radix_kernel(RadixKernel::count, bits_).on(device_), blocks_, from.values,
         counts_.address(), rows_.length, chunk_, chunks_, shift, order_);
  const std::int64_t lines = rows_.count * kSortDigits;
  const LaunchConfig warps = blocks_of(lines * 32 / kSortBlock, on_);
  launch(radix_kernel(RadixKernel::sum, ScalarType::int64).on(device_), warps, counts_.address(),
         totals_.address(), lines, chunks_);
  const RadixKernel move = !numbered ? RadixKernel::move
                           : wide_   ? RadixKernel::move_wide
                                     : RadixKernel::move_narrow;
  launch(radix_kernel(move, bits_).on(device_), blocks_, from.values, to.values, from.numbers,
         to.numbers, indices, counts_.address(), totals_.address(), rows_.length, chunk_, chunks_,
         shift, order_);
}

void RadixSort::run(const Ordered& to) {
  const auto passes = static_cast<int>(scalar_size(rows_.data.type()));
  const bool numbered = to.indices.address() != 0;
  const bool valued = to.values.address() != 0;
  const auto scratch = [&](bool needed, ScalarType type) {
    return needed ? Array::empty(device_, rows_.data.shape(), type, stream_) : Array();
  };
  const ScalarType number = wide_ ? ScalarType::int64 : ScalarType::uint32;
  // The last pass writes to the result, so that the sides alternate back from there.
  const Array first = valued ? to.values : scratch(passes > 2, rows_.data.type());
  const Array second = scratch(passes > 1, rows_.data.type());
  const Array first_numbers = scratch(numbered && passes > 2, number);
  const Array second_numbers = scratch(numbered && passes > 1, number);
  const Side sides[] = {{first.address(), first_numbers.address()},
                        {second.address(), second_numbers.address()}};
  Side from{.values = rows_.data.address()};
  for (int byte = 0; byte < passes; ++byte) {
    const bool last = byte == passes - 1;
    Side target = sides[(passes - 1 - byte) % 2];
    if (last) target = {.values = valued ? to.values.address() : 0, .numbers = 0};
    pass(byte, from, target, last ? to.indices.address() : 0, numbered);
    from = target;
  }
  use_all_on(on_, {&first, &second, &first_numbers, &second_numbers, &counts_, &totals_});
}

Ordered sort_rows(const Rows& rows, bool descending, Wanted wanted, const Stream& stream) {
  Ordered made = empty_results(rows, rows.length, wanted, stream);
  if (rows.data.size() == 0) return made;
  const Stream on = stream ? stream : Stream::legacy(rows.data.device());
  if (rows.length <= kShortRow) {
    launch_short(rows, rows.length, descending, made, on);
  } else if (rows.length <= kSortTile) {
    launch_long(rows, descending, made, on);
  } else {
    RadixSort(rows, descending, stream, on).run(made);
  }
  use_all_on(on, {&rows.data, &made.values, &made.indices});
  return made;
}

}  // namespace

Array sort(const Array& array, int axis, bool descending, const Stream& stream) {
  require_order(array, "sort");
  const Rows rows = rows_along(array, axis, stream);
  return from_rows(sort_rows(rows, descending, Wanted::values, stream).values, rows.axis, stream);
}

Array argsort(const Array& array, int axis, bool descending, const Stream& stream) {
  require_order(array, "argsort");
  const Rows rows = rows_along(array, axis, stream);
  return from_rows(sort_rows(rows, descending, Wanted::indices, stream).indices, rows.axis, stream);
}

Ordered sort_with_indices(const Array& array, int axis, bool descending, const Stream& stream) {
  require_order(array, "sort");
  const Rows rows = rows_along(array, axis, stream);
  const Ordered made = sort_rows(rows, descending, Wanted::both, stream);
  return {from_rows(made.values, rows.axis, stream), from_rows(made.indices, rows.axis, stream)};
}

Ordered sort_short(const Rows& rows, std::int64_t keep, bool descending, const Stream& stream) {
  const Stream on = stream ? stream : Stream::legacy(rows.data.device());
  Ordered made = empty_results(rows, keep, Wanted::both, stream);
  launch_short(rows, keep, descending, made, on);
  use_all_on(on, {&rows.data, &made.values, &made.indices});
  return made;
}

}  // namespace kernwright::kernels
