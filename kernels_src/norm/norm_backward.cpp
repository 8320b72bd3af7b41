// Chooses where the gradients of weights are added up: registers, shared memory, or another launch.
#include "kernels_src/norm/norm_backward.h"

#include "base/errors.h"
#include "base/format.h"
#include "base/math.h"
#include "kernels_src/copy/copy.h"
#include "kernels_src/family.h"
#include "kernels_src/launch_choices.h"
#include "kernels_src/norm/norm_affine.h"
#include "kernels_src/norm/norm_backward.cu.h"
#include "kernels_src/row_plan.h"
#include "memory/transfer.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>
#include <vector>

namespace kernwright::kernels {
namespace {

enum class NormGradientPart {
  rows,
  staged_rows,
  flowing_rows,
  long_rows,
  add_partial,
  column_sums,
  channel_sums
};
enum class NormSink { nowhere, registers, shared_memory };

constexpr int kLongThreads = 1024;
constexpr int kChannelThreads = 256;
constexpr int kColumnThreads = 1024;

struct NormGradientJob {
  Array dx, dy, x;             ///< contiguous
  std::optional<Array> added;  ///< contiguous
  NormGradients result;
  NormShape shape;
  NormOptions options;
  NormSink sink = NormSink::nowhere;
  RowTile tile;
  int staged = 0;  ///< rows of a block that are copied to shared memory ahead
  bool flows = false;
  bool columns = false;
  Stream stream;
  Array statistics;  ///< of the rows, where sums are made by a launch of their own

  Device& device() const { return x.device(); }
  bool is_wide() const { return x.type() == ScalarType::float64; }
  ScalarType computed() const { return is_wide() ? ScalarType::float64 : ScalarType::float32; }
  ScalarType weight_type() const { return options.weight ? options.weight->type() : x.type(); }
  bool wants_sums() const { return result.weight || result.bias; }
  CUdeviceptr weight() const { return result.weight ? result.weight->address() : 0; }
  CUdeviceptr bias() const { return result.bias ? result.bias->address() : 0; }
  CUdeviceptr addition() const { return added ? added->address() : 0; }
  std::int32_t n() const { return static_cast<std::int32_t>(shape.n); }
  AffineArguments affine() const { return affine_arguments(options.weight, std::nullopt, shape); }
  LaunchConfig config(std::int64_t blocks, int threads, std::size_t shared = 0) const {
    return {.grid = {static_cast<std::uint32_t>(blocks)},
            .block = {static_cast<std::uint32_t>(threads)},
            .shared_bytes = static_cast<std::uint32_t>(shared),
            .stream = stream,
            .programmatic_dependent = overlaps_small_launches(device(), blocks)};
  }
  NormGradientPart rows_part() const {
    if (flows) return NormGradientPart::flowing_rows;
    return staged > 0 ? NormGradientPart::staged_rows : NormGradientPart::rows;
  }
  bool is_layer() const { return options.kind == NormKind::layer; }
  std::size_t shared_bytes() const {
    const std::size_t held = static_cast<std::size_t>(tile.items) *
                             static_cast<std::size_t>(tile.pack) *
                             static_cast<std::size_t>(tile.threads);
    const std::size_t next = static_cast<std::size_t>(staged) * 2 * held * scalar_size(x.type());
    if (sink != NormSink::shared_memory) return next;
    const std::size_t sums = is_layer() && staged == 0 ? 2 : 1;
    return next + sums * held * scalar_size(computed());
  }
};

const Kernel& norm_gradient_part(NormGradientPart part, const NormGradientJob& job) {
  static const auto& family = *new Family("norm_backward.cu", text::norm_backward_cu);
  const RowTile& tile = job.tile;
  const auto key = InstanceKey()
                       .add(part, 3)
                       .type(job.x.type())
                       .type(job.weight_type())
                       .add(job.options.kind, 2)
                       .add(job.shape.channels, 1)
                       .add(job.sink, 2)
                       .add(tile.pack, 5)
                       .add(tile.items, 7)
                       .add(tile.width, 11)
                       .add(tile.threads, 11)
                       .add(job.staged, 2)
                       .add(job.added.has_value(), 1)
                       .add(job.columns, 1);
  const auto name = [&] {
    const char* const x = device_type(job.x.type());
    const char* const weight = device_type(job.weight_type());
    const int kind = static_cast<int>(job.options.kind);
    const bool adds = job.added.has_value();
    // Launched after the rows, by what becomes of their sums.
    const std::string partial =
        format("norm_add_partial<{}, {}, {}>", device_type(job.computed()), weight, x);
    const std::string sums =
        job.shape.channels ? format("norm_channel_sums<{}, {}, {}>", x, weight, kChannelThreads)
                           : format("norm_column_sums<{}, {}>", x, weight);
    const auto add_sums = [&](std::string rows) {
      std::vector names{std::move(rows)};
      if (job.wants_sums()) names.push_back(job.sink == NormSink::nowhere ? sums : partial);
      return names;
    };
    switch (part) {
      case NormGradientPart::rows:
        return add_sums(format("norm_backward_rows<{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}>", x,
                               weight, tile.pack, tile.items, tile.width, tile.threads, kind,
                               job.shape.channels, static_cast<int>(job.sink), adds, job.columns));
      case NormGradientPart::staged_rows:
        return add_sums(format("norm_backward_staged<{}, {}, {}, {}, {}, {}, {}, {}, {}>", x,
                               weight, tile.pack, tile.items, tile.threads, kind,
                               static_cast<int>(job.sink), adds, job.columns));
      case NormGradientPart::flowing_rows:
        return add_sums(format("norm_backward_flow<{}, {}, {}, {}, {}, {}, {}, {}>", x, weight,
                               tile.pack, tile.items, tile.threads, kind, job.staged, adds));
      case NormGradientPart::long_rows:
        return add_sums(format("norm_backward_long<{}, {}, {}, {}, {}, {}, {}>", x, weight,
                               tile.pack, kLongThreads, kind, job.shape.channels, adds));
      case NormGradientPart::add_partial:
        return std::vector{partial};
      default:
        return std::vector{sums};
    }
  };
  return family.instance(key, name).on(job.device());
}

/// Rows of which all threads of a block have two whole packs of 16 bytes. The next ones come to
/// shared memory.
bool plan_flowing_gradient(NormGradientJob& job, int pack) {
  constexpr std::int64_t kLeastPacks = 512, kMostPacks = 1024;
  constexpr int kItems = 2;
  const std::int64_t packs = job.shape.n / pack;
  if (pack != 8 || scalar_size(job.x.type()) != 2 || packs < kLeastPacks || packs > kMostPacks ||
      packs % (32 * kItems) != 0)
    return false;
  NormGradientJob wanted = job;
  const int threads = static_cast<int>(packs) / kItems;
  wanted.tile = {.pack = pack, .items = kItems, .width = threads, .threads = threads};
  wanted.sink = NormSink::registers;
  wanted.flows = true;
  const int limit = job.device().attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  for (wanted.staged = threads > 256 ? 2 : 3; wanted.staged > 1; --wanted.staged) {
    if (wanted.shared_bytes() + 2048 > static_cast<std::size_t>(limit)) continue;
    job = wanted;
    return true;
  }
  return false;
}

/// Rows that are worked on while the next one comes to shared memory: of more elements than a warp
/// holds, and of up to 32 elements a thread. More threads would have too few registers.
bool plan_staged_gradient(NormGradientJob& job, int pack) {
  constexpr int kWarpRow = 512, kStagedValues = 32, kMostStagedThreads = 640;
  const std::int64_t packs = job.shape.n / pack;
  const int most = kStagedValues / pack;
  if (job.is_wide() || job.shape.n <= kWarpRow || packs > std::int64_t{kMostStagedThreads} * most ||
      scalar_size(job.x.type()) * static_cast<std::size_t>(pack) != 16)
    return false;
  const int kept = choose(LaunchChoice::norm_gradient_rows, job.device(), job.shape.n,
                          scalar_size(job.x.type()), 3);
  if (kept < 2) return false;
  if (kept > 2 && plan_flowing_gradient(job, pack)) return true;
  int threads = 128;
  while (packs > std::int64_t{threads} * most) threads = std::min(2 * threads, kMostStagedThreads);
  const auto items = static_cast<std::uint64_t>(ceil_div(packs, threads));
  NormGradientJob wanted = job;
  wanted.staged = 1;
  wanted.tile = {.pack = pack,
                 .items = static_cast<int>(std::bit_ceil(items)),
                 .width = threads,
                 .threads = threads};
  // Rows of 4-byte elements leave no registers for the sums of biases.
  wanted.sink = job.is_layer() && scalar_size(job.x.type()) == 4 ? NormSink::shared_memory
                                                                 : NormSink::registers;
  const int limit = job.device().attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  if (wanted.shared_bytes() + 1024 > static_cast<std::size_t>(limit)) return false;
  job = wanted;
  return true;
}

/// Rows of up to 1024 elements, a warp each, where blocks of several rows are enough for all of
/// them: they leave fewer partial sums than blocks of a row each.
bool plan_few_rows(NormGradientJob& job, int pack) {
  constexpr int kHeldValues = 16;
  const RowTile tile = tile_rows(job.shape.n, pack, kHeldValues);
  if (job.is_wide() || tile.width > 32 || tile.items == 0 ||
      tile.blocks(job.shape.rows) > static_cast<std::uint32_t>(job.device().attribute(
                                        CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)))
    return false;
  job.tile = tile;
  job.sink = NormSink::registers;
  return true;
}

/// Rows in registers, with the sums there if there is room, else in shared memory, else nowhere.
void plan_norm_rows(NormGradientJob& job, bool wants_columns) {
  const Array& added = job.added ? *job.added : job.dx;
  const int pack =
      affine_pack(common_pack(job.shape.n, {&job.dx, &job.dy, &job.x, &added}, job.x.ndim()),
                  job.options.weight, std::nullopt, job.shape);
  const int values = choose(LaunchChoice::norm_gradient_values, job.device(), job.shape.n,
                            scalar_size(job.x.type()), job.is_wide() ? 4 : 8);
  job.tile = tile_rows(job.shape.n, pack, values);
  if (!job.wants_sums() || job.shape.channels) return;
  const bool is_held = job.tile.width <= 32 && job.tile.items > 0;
  if (!is_held && !wants_columns && plan_few_rows(job, pack)) return;
  if (plan_staged_gradient(job, pack)) return;
  const RowTile narrow = tile_rows(job.shape.n, pack, values, 512);
  if (narrow.items > 0) {
    job.sink = NormSink::registers;
    job.tile = narrow;
    return;
  }
  job.sink = NormSink::shared_memory;
  const int limit = job.device().attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  // A reduction of the block has 1 KB or less.
  if (job.tile.items == 0 || job.shared_bytes() + 1024 > static_cast<std::size_t>(limit))
    job.sink = NormSink::nowhere;
}

/// Sums of dx where they fit into registers beside those of weight and bias.
void plan_norm_gradient(NormGradientJob& job, bool wants_columns) {
  constexpr int kMostHeld = 16;
  plan_norm_rows(job, wants_columns);
  job.columns = wants_columns && job.wants_sums() && job.sink == NormSink::registers &&
                !job.flows && job.tile.pack * job.tile.items <= kMostHeld &&
                job.shape.row_axes == 1;
  if (!job.columns) return;
  job.result.columns = Array::empty(job.device(), {job.shape.n}, job.x.type(), job.stream);
}

template <typename C>
void launch_norm_gradient_rows(const NormGradientJob& job, C eps) {
  const Kernel& kernel = norm_gradient_part(job.rows_part(), job);
  const std::int64_t multiprocessors =
      job.device().attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  std::int64_t parts = job.tile.blocks(job.shape.rows);
  if (parts > multiprocessors) {
    const int blocks = std::max(1, kernel.occupancy(job.tile.threads, job.shared_bytes()));
    parts = std::min(parts, multiprocessors * blocks);
  }
  const bool sums = job.sink != NormSink::nowhere;
  const bool lone =
      parts == 1 && job.rows_part() == NormGradientPart::rows && job.sink == NormSink::registers;
  // A lone block writes gradients, also those that nobody wants, in their own type.
  const ScalarType type = lone ? job.weight_type() : job.computed();
  const auto summed = [&](bool wanted, const std::optional<Array>& result) {
    if (lone && result) return *result;
    const Shape extents = {wanted ? parts : 0, job.shape.n};
    return Array::empty(job.device(), extents, type, job.stream);
  };
  const Array weight = summed(sums, job.result.weight);
  const Array bias = summed(sums, job.result.bias);
  const Array columns = summed(job.columns, job.result.columns);
  const LaunchConfig config = job.config(parts, job.tile.threads, job.shared_bytes());
  const auto run = [&](auto... last) {
    launch(kernel, config, job.dx.address(), job.dy.address(), job.x.address(), job.addition(),
           job.shape.rows, job.n(), job.affine(), eps, weight.address(), bias.address(), last...);
  };
  if (job.flows) {
    run();
  } else if (job.staged > 0) {
    run(columns.address());
  } else {
    run(columns.address(), job.statistics.address());
  }
  if (sums && !lone) {
    LaunchConfig adding = job.config((job.shape.n + 31) / 32, kColumnThreads);
    if (job.columns) adding.grid.y = 2;
    // Behind a large launch it was slower (2048x2560: 17.9 -> 19.0 us on an H200).
    adding.programmatic_dependent = config.programmatic_dependent;
    launch(norm_gradient_part(NormGradientPart::add_partial, job), adding, job.weight(), job.bias(),
           job.columns ? job.result.columns->address() : 0, weight.address(), bias.address(),
           columns.address(), static_cast<std::int32_t>(parts), job.n());
  }
  for (const Array* const each : {&weight, &bias, &columns}) each->use_on(job.stream);
}

void launch_norm_sums(const NormGradientJob& job) {
  if (job.shape.channels) {
    launch(norm_gradient_part(NormGradientPart::channel_sums, job),
           job.config(job.shape.groups * job.shape.per_row, kChannelThreads), job.weight(),
           job.bias(), job.dy.address(), job.x.address(), job.statistics.address(),
           job.shape.rows / job.shape.groups, job.affine());
  } else {
    launch(norm_gradient_part(NormGradientPart::column_sums, job),
           job.config((job.shape.n + 31) / 32, kColumnThreads), job.weight(), job.bias(),
           job.dy.address(), job.x.address(), job.statistics.address(), job.shape.rows, job.n());
  }
}

template <typename C>
void run_norm_gradient(NormGradientJob& job, C eps) {
  const bool apart = job.wants_sums() && job.sink == NormSink::nowhere;
  if (apart)
    job.statistics = Array::empty(job.device(), {job.shape.rows, 2}, job.computed(), job.stream);
  if (job.tile.items > 0) {
    launch_norm_gradient_rows(job, eps);
  } else {
    const std::uint32_t blocks = RowTile{.width = 1, .threads = 1}.blocks(job.shape.rows);
    launch(norm_gradient_part(NormGradientPart::long_rows, job), job.config(blocks, kLongThreads),
           job.dx.address(), job.dy.address(), job.x.address(), job.addition(), job.shape.rows,
           job.n(), job.affine(), eps, job.statistics.address());
  }
  if (!apart) return;
  launch_norm_sums(job);
  job.statistics.use_on(job.stream);
}

Array norm_operand(const Array& array, const Stream& stream) {
  return array.is_contiguous() && common_pack(1, {&array}, array.ndim()) > 0 ? array
                                                                             : copy(array, stream);
}

void check_norm_gradient(const Array& dy, const Array& x, const char* what, const char* name) {
  require_computed(x, what, "x");
  if (dy.shape() == x.shape() && dy.type() == x.type() && &dy.device() == &x.device()) return;
  throw InvalidArgument(
      format("Incompatible dimensions: the gradient of {} takes {} and x of one shape and dtype on "
             "the same device, got {} and {}",
             what, name, dy.identify(), x.identify()));
}

}  // namespace

NormGradients norm_backward(const Array& dy, const Array& x, const NormOptions& options,
                            const NormGradientOptions& wanted, const Stream& stream) {
  const char* const what = norm_name(options.kind, options.groups);
  check_norm_gradient(dy, x, what, "dy");
  if (wanted.added) check_norm_gradient(*wanted.added, x, what, "added");
  const Stream on = stream ? stream : Stream::legacy(x.device());
  NormGradientJob job{.dx = Array::empty(x.device(), x.shape(), x.type(), on),
                      .dy = norm_operand(dy, on),
                      .x = norm_operand(x, on),
                      .added = {},
                      .result = {},
                      .shape = norm_shape(x, options.weight, std::nullopt, options.groups, what),
                      .options = options,
                      .tile = {},
                      .stream = on,
                      .statistics = {}};
  job.result.dx = job.dx;
  if (wanted.added) job.added = norm_operand(*wanted.added, on);
  Shape affine(x.shape().end() - (job.shape.channels ? 0 : job.shape.row_axes), x.shape().end());
  if (job.shape.channels) affine = {x.shape()[1]};
  if (options.weight) {
    job.options.weight = norm_operand(*options.weight, on);
    job.result.weight = Array::empty(x.device(), affine, options.weight->type(), on);
  }
  if (wanted.bias) job.result.bias = Array::empty(x.device(), affine, job.weight_type(), on);
  if (x.size() == 0) {
    for (auto* const each : {&job.result.weight, &job.result.bias})
      if (*each && (*each)->size() > 0)
        fill(x.device(), (*each)->address(), 0, 1, (*each)->nbytes(), on);
    return job.result;
  }
  plan_norm_gradient(job, wanted.columns);
  if (job.is_wide()) {
    run_norm_gradient(job, options.eps);
  } else {
    run_norm_gradient(job, static_cast<float>(options.eps));
  }
  use_all_on(
      on, {&job.dx, &job.dy, &job.x},
      {&job.added, &job.options.weight, &job.result.weight, &job.result.bias, &job.result.columns});
  return job.result;
}

}  // namespace kernwright::kernels
