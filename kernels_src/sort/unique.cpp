// Sorts, counts the groups, writes them.
#include "kernels_src/sort/unique.h"

#include "base/format.h"
#include "core/device.h"
#include "kernels_src/family.h"
#include "kernels_src/sort/sort.h"
#include "kernels_src/sort/unique.cu.h"

namespace kernwright::kernels {

namespace {

constexpr std::int64_t kUniqueItems = 4;

enum class UniqueKernel : std::uint8_t { count, write, measure };

const LazyKernel& unique_kernel(UniqueKernel part, ScalarType type) {
  static const auto& family = *new Family("unique.cu", text::unique_cu);
  return family.instance(InstanceKey().add(part, 2).type(type), [&]() -> std::string {
    if (part == UniqueKernel::measure) return "measure_groups";
    return format("{}_groups<{}>", part == UniqueKernel::count ? "count" : "write",
                  device_type(type));
  });
}

}  // namespace

Unique unique(const Array& array, const UniqueParts& parts, const Stream& stream) {
  require_order(array, "unique");
  Device& device = array.device();
  const auto made_of = [&](bool wanted, Shape shape, ScalarType type) {
    return wanted ? Array::empty(device, std::move(shape), type, stream) : Array();
  };
  Unique made;
  made.inverse = made_of(parts.inverse, array.shape(), ScalarType::int64);
  const std::int64_t size = array.size();
  const Array flat = without_gaps(array, stream).reshape({size});
  Ordered sorted;
  if (parts.indices || parts.inverse) {
    sorted = sort_with_indices(flat, 0, false, stream);
  } else {
    sorted.values = sort(flat, 0, false, stream);
  }
  const Stream on = stream ? stream : Stream::legacy(device);
  const Chunks chunks = size > 0 ? chunks_of(device, size, kSortBlock * kUniqueItems) : Chunks{};
  const Array counts = Array::empty(device, {chunks.count}, ScalarType::int64, stream);
  const LaunchConfig config = blocks_of(chunks.count, on);
  std::int64_t groups = 0;
  if (size > 0) {
    launch(unique_kernel(UniqueKernel::count, bits_of(array.type())).on(device), config,
           sorted.values.address(), size, chunks.size, counts.address(), order_of(array.type()));
    counts.use_on(on);
    groups = sum_on_host(counts, stream);
  }
  made.values = made_of(true, {groups}, array.type());
  made.indices = made_of(parts.indices, {groups}, ScalarType::int64);
  made.counts = made_of(parts.counts, {groups}, ScalarType::int64);
  const Array starts = made_of(parts.counts, {groups}, ScalarType::int64);
  if (size == 0) return made;
  launch(unique_kernel(UniqueKernel::write, bits_of(array.type())).on(device), config,
         sorted.values.address(), sorted.indices.address(), size, chunks.size, counts.address(),
         made.values.address(), starts.address(), made.indices.address(), made.inverse.address(),
         order_of(array.type()));
  if (parts.counts) {
    launch(unique_kernel(UniqueKernel::measure, ScalarType::int64).on(device),
           spread(device, groups, on), starts.address(), made.counts.address(), groups, size);
  }
  use_all_on(on, {&sorted.values, &sorted.indices, &counts, &starts, &made.values, &made.indices,
                  &made.inverse, &made.counts});
  return made;
}

}  // namespace kernwright::kernels
