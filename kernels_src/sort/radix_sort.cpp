// Plans the tiles of a sort by several blocks a row, and launches its passes.
#include "kernels_src/sort/radix_sort.h"

#include "base/format.h"
#include "base/math.h"
#include "core/device.h"
#include "kernels_src/family.h"
#include "kernels_src/launch_choices.h"
#include "kernels_src/sort/radix_sort.cu.h"
#include "memory/transfer.h"

#include <algorithm>
#include <array>

namespace kernwright::kernels {

namespace {

constexpr std::int64_t kRadixDigits = 256;
/// Rows of as many elements have counts of 64 bits: two bits of a count say what it is of.
constexpr std::int64_t kWideRow = std::int64_t{1} << 30;
/// A block that counts takes at least so many elements, and a multiple of it.
constexpr std::int64_t kCountTile = 2048;
constexpr std::int64_t kCountBlocksPerProcessor = 8;

/// The differences between the instances.
struct RadixInstance {
  ScalarType bits;
  bool floats, numbered, wide;
  int threads, items;

  std::int64_t tile() const { return std::int64_t{threads} * items; }
};

/// As Sides of radix_sort.cu.
struct RadixSides {
  CUdeviceptr from, first, second, first_numbers, second_numbers, indices;
  std::int32_t keep;
};

std::string move_name(const RadixInstance& instance) {
  return format("move_digits<{}, {}, {}, {}, {}, {}>", device_type(instance.bits), instance.floats,
                instance.threads, instance.items, instance.numbered, instance.wide);
}

const LazyKernel& radix_kernel(const RadixInstance& instance, bool move) {
  static const auto& family = *new Family("radix_sort.cu", text::radix_sort_cu);
  InstanceKey key;
  key.add(move, 1).type(instance.bits).add(instance.floats, 1).add(instance.wide, 1);
  if (!move) {
    return family.instance(key, [&] {
      return std::vector{format("count_digits<{}, {}, {}>", device_type(instance.bits),
                                instance.floats, instance.wide),
                         move_name(instance)};
    });
  }
  key.add(instance.numbered, 1).add(instance.threads, 10).add(instance.items, 6);
  return family.instance(key, [&] { return move_name(instance); });
}

/// Elements of 4 bytes taken by a thread: many, so elements of one digit stay together, unless
/// processors or parts of tiles were idle then.
int radix_words(const Rows& rows, int threads, int per_word, bool numbered) {
  const std::int64_t busy = std::int64_t{2} * multiprocessors(rows.data.device());
  for (const int words : {20, 16, 12}) {
    if (numbered && words == 20) continue;
    const std::int64_t tile = std::int64_t{threads} * words / per_word;
    const std::int64_t tiles = ceil_div(rows.length, tile);
    const bool is_full = tiles * tile <= rows.length + rows.length / 4;
    if (is_full && rows.count * tiles >= busy) return words;
  }
  return 8;
}

RadixInstance plan_radix(const Rows& rows, bool numbered) {
  const Array& data = rows.data;
  const std::size_t size = scalar_size(data.type());
  RadixInstance plan{.bits = key_bits_type(data.type()),
                     .floats = device_order(data.type()).nan != 0,
                     .numbered = numbered,
                     .wide = rows.length >= kWideRow,
                     .threads = 0,
                     .items = 0};
  const int per_word = size == 8 || (numbered && plan.wide) ? 2 : 1;
  const auto chosen = [&](LaunchChoice values, LaunchChoice indices, int rule) {
    return choose(numbered ? indices : values, data.device(), data.size(), size, rule);
  };
  plan.threads = chosen(LaunchChoice::sort_threads, LaunchChoice::argsort_threads, 384);
  plan.items = chosen(LaunchChoice::sort_words, LaunchChoice::argsort_words,
                      radix_words(rows, plan.threads, per_word, numbered)) /
               per_word;
  return plan;
}

/// Counts, tickets and boards of one sort.
class RadixBoards {
 public:
  RadixBoards(const Rows& rows, const RadixInstance& plan, int places, std::int64_t tiles,
              const Stream& stream, const Stream& on)
      : word_(plan.wide ? 8 : 4), rows_(rows.count) {
    Device& device = rows.data.device();
    counts_ = rows.count * places * kRadixDigits * word_;
    const std::int64_t zeros = counts_ + 4 * (rows.count + places);
    small_ = Array::empty(device, {zeros + 4 * rows.count}, ScalarType::uint8, stream);
    fill(device, small_.address(), 0, 4, static_cast<std::size_t>(zeros / 4), on);
    size_ = rows.count * tiles * kRadixDigits;
    boards_ =
        Array::empty(device, {size_ * word_ * (places > 1 ? 2 : 1)}, ScalarType::uint8, stream);
    idle_ = zeros;
  }

  CUdeviceptr counts() const { return small_.address(); }
  CUdeviceptr arrived() const { return at(counts_); }
  CUdeviceptr ticket(int place) const { return at(counts_ + 4 * (rows_ + place)); }
  CUdeviceptr idle() const { return at(idle_); }
  /// The board of the moves by turns.
  CUdeviceptr board(int place) const {
    return boards_.address() + static_cast<CUdeviceptr>(place % 2 * size_ * word_);
  }
  std::int64_t board_size() const { return size_; }
  void use(const Stream& on) const { use_all_on(on, {&small_, &boards_}); }

 private:
  CUdeviceptr at(std::int64_t offset) const {
    return small_.address() + static_cast<CUdeviceptr>(offset);
  }

  std::int64_t word_, rows_, counts_ = 0, idle_ = 0, size_ = 0;
  Array small_, boards_;
};

}  // namespace

void radix_sort(const Rows& rows, bool descending, const Ordered& to, const Stream& stream,
                const Stream& on) {
  Device& device = rows.data.device();
  const bool numbered = to.indices.address() != 0, valued = to.values.address() != 0;
  const auto places = static_cast<std::int32_t>(scalar_size(rows.data.type()));
  const RadixInstance plan = plan_radix(rows, numbered);
  const std::int64_t tiles = ceil_div(rows.length, plan.tile());
  const auto scratch = [&](bool needed, ScalarType type) {
    return needed ? Array::empty(device, rows.data.shape(), type, stream) : Array();
  };
  // The last pass writes to the result, so that the sides alternate back from there.
  const ScalarType number = plan.wide ? ScalarType::uint64 : ScalarType::uint32;
  const Array first = valued ? to.values : scratch(places > 2, rows.data.type());
  const Array second = scratch(places > 1, rows.data.type());
  const Array first_numbers = scratch(numbered && places > 2, number);
  const Array second_numbers = scratch(numbered && places > 1, number);
  const RadixBoards boards(rows, plan, places, tiles, stream, on);

  const DeviceOrder order = device_order(rows.data.type(), descending);
  const std::int64_t target =
      std::int64_t{multiprocessors(device)} * kCountBlocksPerProcessor / rows.count;
  const std::int64_t parts = ceil_div(rows.length, kCountTile);
  const std::int64_t chunk =
      ceil_div(parts, std::clamp(target, std::int64_t{1}, parts)) * kCountTile;
  const std::int64_t chunks = ceil_div(rows.length, chunk);
  launch(radix_kernel(plan, false).on(device), block_config(rows.count * chunks, on),
         rows.data.address(), boards.counts(), boards.arrived(), boards.idle(), boards.board(0),
         boards.board_size(), rows.length, chunk, static_cast<std::uint32_t>(chunks), order);

  const RadixSides sides{rows.data.address(),     first.address(),          second.address(),
                         first_numbers.address(), second_numbers.address(), to.indices.address(),
                         valued ? 1 : 0};
  const std::int64_t element = std::max<std::int64_t>(places, numbered ? (plan.wide ? 8 : 4) : 0);
  const LaunchConfig config{
      .grid = {static_cast<std::uint32_t>(rows.count * tiles)},
      .block = {static_cast<std::uint32_t>(plan.threads)},
      .shared_bytes = static_cast<std::uint32_t>(
          std::max(plan.tile() * element, std::int64_t{plan.threads} / 32 * kRadixDigits * 4)),
      .stream = on};
  for (std::int32_t place = 0; place < places; ++place) {
    const CUdeviceptr next = place + 1 < places ? boards.board(place + 1) : 0;
    launch(radix_kernel(plan, true).on(device), config, sides, boards.counts(), boards.idle(),
           boards.ticket(place), boards.board(place), next, rows.length,
           static_cast<std::uint32_t>(tiles), place, order);
  }
  use_all_on(on, {&first, &second, &first_numbers, &second_numbers});
  boards.use(on);
}

}  // namespace kernwright::kernels
