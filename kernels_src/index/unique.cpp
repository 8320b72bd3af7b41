// Sorts, counts the groups, writes them.
#include "kernels_src/index/unique.h"

#include "base/format.h"
#include "core/device.h"
#include "kernels_src/family.h"
#include "kernels_src/index/gather.h"
#include "kernels_src/index/unique.cu.h"
#include "kernels_src/sort/sort.h"

namespace kernwright::kernels {

namespace {

constexpr std::int64_t kUniqueItems = 4;

enum class UniqueKernel : std::uint8_t { count, write, measure };

const LazyKernel& unique_kernel(UniqueKernel part, ScalarType type) {
  static const auto& family = *new Family("unique.cu", text::unique_cu);
  return family.instance(InstanceKey().add(part, 2).type(type), [&]() -> std::string {
    if (part == UniqueKernel::measure) return "measure_groups";
    const char* const bits =
        device_type(key_bits_type(is_complex(type) ? real_part_type(type) : type));
    return format("{}_groups<{}>", part == UniqueKernel::count ? "count" : "write",
                  is_complex(type) ? format("Pair<{}>", bits) : bits);
  });
}

/// By the imaginary parts, then by the real ones: the second sort keeps the order of equal ones.
Ordered sort_complex(const Array& flat, const Stream& stream) {
  const Array parts = flat.view(real_part_type(flat.type())).reshape({flat.size(), 2});
  const Array by_imag = sort_and_index(parts.drop_axis(1, 1), 0, false, stream).indices;
  const Array real = take_at(parts.drop_axis(1, 0), {{0}, {by_imag}}, stream);
  const Array by_real = sort_and_index(real, 0, false, stream).indices;
  Array origin = take_at(by_imag, {{0}, {by_real}}, stream);
  Array values = take_at(flat, {{0}, {origin}}, stream);
  return {std::move(values), std::move(origin)};
}

}  // namespace

Unique unique(const Array& array, const UniqueParts& parts, const Stream& stream) {
  Device& device = array.device();
  const auto make_result = [&](bool wanted, Shape shape, ScalarType type) {
    return wanted ? Array::empty(device, std::move(shape), type, stream) : Array();
  };
  Unique made;
  made.inverse = make_result(parts.inverse, array.shape(), ScalarType::int64);
  const std::int64_t size = array.size();
  const Array flat = without_gaps(array, stream).reshape({size});
  const bool pairs = is_complex(array.type());
  Ordered sorted;
  if (pairs) {
    if (size > 0) sorted = sort_complex(flat, stream);
  } else if (parts.indices || parts.inverse) {
    sorted = sort_and_index(flat, 0, false, stream);
  } else {
    sorted.values = sort(flat, 0, false, stream);
  }
  const ScalarType key_type = pairs ? array.type() : key_bits_type(array.type());
  const DeviceOrder order = device_order(pairs ? real_part_type(array.type()) : array.type());
  const Stream on = stream ? stream : Stream::legacy(device);
  const Chunks chunks = size > 0 ? make_chunks(device, size, kSortBlock * kUniqueItems) : Chunks{};
  const Array counts = Array::empty(device, {chunks.count}, ScalarType::int64, stream);
  const LaunchConfig config = block_config(chunks.count, on);
  std::int64_t groups = 0;
  if (size > 0) {
    launch(unique_kernel(UniqueKernel::count, key_type).on(device), config, sorted.values.address(),
           size, chunks.size, counts.address(), order);
    counts.use_on(on);
    groups = sum_on_host(counts, stream);
  }
  made.values = make_result(true, {groups}, array.type());
  made.indices = make_result(parts.indices, {groups}, ScalarType::int64);
  made.counts = make_result(parts.counts, {groups}, ScalarType::int64);
  const Array starts = make_result(parts.counts, {groups}, ScalarType::int64);
  if (size == 0) return made;
  launch(unique_kernel(UniqueKernel::write, key_type).on(device), config, sorted.values.address(),
         sorted.indices.address(), size, chunks.size, counts.address(), made.values.address(),
         starts.address(), made.indices.address(), made.inverse.address(), order);
  if (parts.counts) {
    launch(unique_kernel(UniqueKernel::measure, ScalarType::int64).on(device),
           spread(device, groups, on), starts.address(), made.counts.address(), groups, size);
  }
  use_all_on(on, {&sorted.values, &sorted.indices, &counts, &starts, &made.values, &made.indices,
                  &made.inverse, &made.counts});
  return made;
}

}  // namespace kernwright::kernels
