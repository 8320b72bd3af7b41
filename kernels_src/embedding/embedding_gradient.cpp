// Sorts the places of an embedding by their rows, then adds up.
#include "base/errors.h"
#include "base/format.h"
#include "base/math.h"
#include "kernels_src/embedding/embedding.h"
#include "kernels_src/embedding/embedding_gradient.cu.h"
#include "kernels_src/family.h"
#include "kernels_src/operands.h"
#include "memory/transfer.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

namespace kernwright::kernels {
namespace {

// The constants of embedding_gradient.cu.
constexpr std::int64_t kSortThreads = 256, kSortTile = 2048, kSortDigits = 256, kSumLanes = 32;
constexpr int kDigitBits = 8;

const Family& gradient_family() {
  static const auto& made = *new Family("embedding_gradient.cu", text::embedding_gradient_cu);
  return made;
}

enum class SortStep : std::uint8_t { count, scan, scatter };

const LazyKernel& sort_kernel(SortStep step) {
  return gradient_family().instance(InstanceKey().add(0, 2).add(step, 2), [&]() -> std::string {
    constexpr std::array names = {"count_digits", "scan_counts", "scatter_digits"};
    return names[static_cast<std::size_t>(step)];
  });
}

const LazyKernel& keys_kernel(ScalarType id) {
  return gradient_family().instance(InstanceKey().add(1, 2).type(id),
                                    [&] { return format("make_keys<{}>", device_type(id)); });
}

const LazyKernel& rows_kernel(ScalarType type, int width) {
  return gradient_family().instance(InstanceKey().add(2, 2).type(type).add(width, 5), [&] {
    return format("sum_rows<{}, {}>", device_type(type), width);
  });
}

LaunchConfig sort_blocks(std::int64_t count, std::int64_t each, std::int64_t threads,
                         const Stream& on) {
  return {.grid = {static_cast<std::uint32_t>(ceil_div(count, each))},
          .block = {static_cast<std::uint32_t>(threads)},
          .stream = on};
}

/// Keys (rows of the table) in order, and the place of each.
struct SortedPlaces {
  Array keys, places;
};

SortedPlaces sort_places(const Array& ids, std::int64_t vocabulary, std::int64_t padding,
                         const Stream& on) {
  Device& device = ids.device();
  const auto count = static_cast<std::uint32_t>(ids.size());
  const auto words = [&](std::int64_t n) {
    return Array::empty(device, {n}, ScalarType::uint32, on);
  };
  SortedPlaces from{words(count), words(count)}, to{words(count), words(count)};
  const std::int64_t blocks = ceil_div(count, kSortTile);
  const Array counts = words(kSortDigits * blocks);
  launch(keys_kernel(ids.type()).on(device), sort_blocks(count, kSortThreads, kSortThreads, on),
         ids.address(), from.keys.address(), from.places.address(), count, vocabulary, padding);
  const auto bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(vocabulary)));
  for (std::int32_t shift = 0; shift < bits; shift += kDigitBits) {
    const LaunchConfig tiles = sort_blocks(count, kSortTile, kSortThreads, on);
    launch(sort_kernel(SortStep::count).on(device), tiles, from.keys.address(), counts.address(),
           count, shift);
    launch(sort_kernel(SortStep::scan).on(device), sort_blocks(1, 1, 1024, on), counts.address(),
           static_cast<std::uint32_t>(counts.size()));
    launch(sort_kernel(SortStep::scatter).on(device), tiles, from.keys.address(),
           from.places.address(), to.keys.address(), to.places.address(), counts.address(), count,
           shift);
    std::swap(from, to);
  }
  counts.use_on(on);
  for (const Array* each : {&from.keys, &from.places, &to.keys, &to.places}) each->use_on(on);
  return from;
}

void check_gradient(const Array& dy, const Array& ids, std::int64_t vocabulary) {
  require_floating(dy, "embedding_backward", "grad");
  require_one_device(dy, "grad", ids, "ids");
  if (ids.type() != ScalarType::int32 && ids.type() != ScalarType::int64) {
    throw ArgumentError(
        format("embedding_backward: ids is a {}, and must be of int32 or int64", ids.identify()));
  }
  if (dy.ndim() != ids.ndim() + 1 ||
      !std::equal(ids.shape().begin(), ids.shape().end(), dy.shape().begin())) {
    throw InvalidArgument(
        format("Incompatible dimensions: grad is a {}, ids a {}; grad must have "
               "the shape of ids and one axis more",
               dy.identify(), ids.identify()));
  }
  constexpr std::int64_t kMost = 2147483647;
  if (vocabulary < 0 || vocabulary > kMost || ids.size() > kMost) {
    throw InvalidArgument(
        format("embedding_backward: {} ids and {} rows of the table; both must "
               "be from 0 to {}",
               ids.size(), vocabulary, kMost));
  }
}

}  // namespace

Array embedding_backward(const Array& dy, const Array& ids, std::int64_t vocabulary,
                         std::optional<std::int64_t> padding, double scale, const Stream& stream) {
  check_gradient(dy, ids, vocabulary);
  Device& device = dy.device();
  const Stream on = stream ? stream : Stream::legacy(device);
  const std::int64_t cols = dy.shape().back();
  Array result = Array::empty(device, {vocabulary, cols}, dy.type(), on);
  if (result.size() == 0) return result;
  fill(device, result.address(), 0, 1, result.nbytes(), on);
  result.use_on(on);
  if (ids.size() == 0) return result;
  const Array numbers = contiguous(ids, on), gradient = contiguous(dy, on);
  const SortedPlaces sorted = sort_places(numbers, vocabulary, padding.value_or(-1), on);
  const int width =
      pack_width(dy.type(), {gradient.address(), result.address(),
                             static_cast<std::uint64_t>(cols) * scalar_size(dy.type())});
  const std::int64_t tile = kSumLanes * width;
  const LaunchConfig config{.grid = {static_cast<std::uint32_t>(ids.size()),
                                     static_cast<std::uint32_t>(ceil_div(cols, tile))},
                            .block = {static_cast<std::uint32_t>(kSortThreads)},
                            .stream = on};
  dispatch_compute(dy.type(), [&](auto zero) {
    launch(rows_kernel(dy.type(), width).on(device), config, gradient.address(),
           sorted.keys.address(), sorted.places.address(), result.address(),
           static_cast<std::uint32_t>(ids.size()), static_cast<std::uint32_t>(vocabulary), cols,
           static_cast<decltype(zero)>(scale));
  });
  for (const Array* each : {&numbers, &gradient, &sorted.keys, &sorted.places}) each->use_on(on);
  return result;
}

}  // namespace kernwright::kernels
