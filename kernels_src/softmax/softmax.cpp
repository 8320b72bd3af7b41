// Chooses among rows in registers, rows kept in shared memory, shared rows, and columns.
#include "kernels_src/softmax/softmax.h"

#include "array/shape.h"
#include "base/errors.h"
#include "base/format.h"
#include "base/math.h"
#include "kernels_src/copy/copy.h"
#include "kernels_src/family.h"
#include "kernels_src/launch_choices.h"
#include "kernels_src/row_plan.h"
#include "kernels_src/softmax/softmax.cu.h"

#include <algorithm>
#include <numeric>

namespace kernwright::kernels {
namespace {

enum class SoftmaxPart { rows, kept, cluster, sums, finish, columns };

/// Everything that the kernels are told; x and mask end in the axis, except in columns.
struct SoftmaxJob {
  Array out, x;
  std::optional<Array> mask;
  RowExtent extent;
  double scale;
  bool log;
  Stream stream;

  Device& device() const { return x.device(); }
  CUdeviceptr mask_address() const { return mask ? mask->address() : x.address(); }
  std::int64_t mask_step() const { return mask ? mask->strides().back() : 0; }
  Walk<2> view() const { return *pair_rows(x, mask ? *mask : x); }
};

/// How the rows of SoftmaxPart::rows and SoftmaxPart::kept lie.
struct RowForm {
  bool is_whole = false;    ///< is_whole_tile()
  bool is_far = false;      ///< they are walked in several dimensions
  bool is_shifted = false;  ///< they begin at any address, and end in part of a pack
};

const LazyKernel& softmax_part(SoftmaxPart kind, const SoftmaxJob& job, int pack, int items,
                               int width, int threads, RowForm form = {}) {
  static const auto& family = *new Family("softmax.cu", text::softmax_cu);
  const auto mask_type = job.mask ? job.mask->type() : job.x.type();
  const auto key = InstanceKey()
                       .add(kind, 3)
                       .type(job.x.type())
                       .type(job.out.type())
                       .add(job.mask.has_value(), 1)
                       .type(mask_type)
                       .add(job.log, 1)
                       .add(form.is_whole, 1)
                       .add(form.is_far, 1)
                       .add(form.is_shifted, 1)
                       .add(pack, 5)
                       .add(items, 7)
                       .add(width, 11)
                       .add(threads, 11);
  return family.instance(key, [&] {
    const char* const x = device_type(job.x.type());
    const char* const out = device_type(job.out.type());
    const char* const mask = job.mask ? device_type(mask_type) : "NoMask";
    const auto finish = [&] {
      return format("softmax_finish<{}, {}, {}, {}, {}, {}, {}>", x, out, mask, pack, items,
                    threads, job.log);
    };
    switch (kind) {
      case SoftmaxPart::rows:
        return std::vector{format("softmax_rows<{}, {}, {}, {}, {}, {}, {}, {}, {}, {}>", x, out,
                                  mask, pack, items, width, threads, job.log, form.is_whole,
                                  form.is_far ? kWalkDims : 1)};
      case SoftmaxPart::kept:
        return std::vector{format("softmax_kept<{}, {}, {}, {}, {}, {}, {}>", x, out, pack, items,
                                  threads, job.log, form.is_shifted)};
      case SoftmaxPart::cluster:
        return std::vector{format("softmax_cluster<{}, {}, {}, {}, {}, {}, {}>", x, out, mask, pack,
                                  items, threads, job.log)};
      case SoftmaxPart::sums:
        return std::vector{
            format("softmax_sums<{}, {}, {}, {}, {}>", x, mask, pack, items, threads), finish()};
      case SoftmaxPart::finish:
        return std::vector{finish()};
      case SoftmaxPart::columns:
        break;
    }
    return std::vector{format("softmax_columns<{}, {}, {}>", x, out, job.log)};
  });
}

/// Calls launch(scale) with the scale in the type that `type` is computed in.
template <typename Launch>
void dispatch_scale(ScalarType type, double scale, const Launch& launch) {
  if (type == ScalarType::float64) {
    launch(scale);
  } else {
    launch(static_cast<float>(scale));
  }
}

LaunchConfig softmax_config(const SoftmaxJob& job, std::uint32_t blocks, int threads,
                            std::size_t shared = 0) {
  return {.grid = {blocks},
          .block = {static_cast<std::uint32_t>(threads)},
          .shared_bytes = static_cast<std::uint32_t>(shared),
          .stream = job.stream,
          .programmatic_dependent = overlaps_small_launches(job.device(), blocks)};
}

void launch_softmax_rows(const SoftmaxJob& job, const RowTile& tile) {
  const LaunchConfig config = softmax_config(job, tile.blocks(job.extent.rows), tile.threads);
  dispatch_walk(job.view(), [&](const auto& view) {
    const RowForm form{.is_whole = is_whole_tile(tile, job.extent), .is_far = view.ndim > 1};
    const Kernel& kernel =
        softmax_part(SoftmaxPart::rows, job, tile.pack, tile.items, tile.width, tile.threads, form)
            .on(job.device());
    dispatch_scale(job.x.type(), job.scale, [&](auto scale) {
      launch(kernel, config, job.out.address(), job.x.address(), job.mask_address(), view,
             job.extent.rows, static_cast<std::int32_t>(job.extent.n), job.mask_step(), scale);
    });
  });
}

constexpr int kKeptThreads = 1024;  ///< of a multiprocessor

/// Packs of a thread of a block that has a row.
struct KeptRow {
  int threads = kKeptThreads;
  int items = 0;   ///< in registers
  int kept = 0;    ///< in shared memory
  int bytes = 16;  ///< of a pack
  bool is_shifted = false;

  int shared_bytes() const { return kept * threads * bytes; }
};

/// A reduction of the block has 256 bytes or less, and the device keeps 1 KB for each block.
constexpr int kKeptReserve = 1280;

KeptRow kept_row(const SoftmaxJob& job, int pack, int threads) {
  const int narrow = threads < kKeptThreads ? 16 : 24;  // values in registers
  const int values = job.x.type() == ScalarType::float64 ? narrow / 2 : narrow;
  KeptRow row{.threads = threads, .items = std::max(1, values / pack)};
  row.bytes = static_cast<int>(scalar_size(job.x.type())) * pack;
  const std::int64_t rest = ceil_div(job.extent.n, pack) - std::int64_t{threads} * row.items;
  const std::int64_t kept = std::max<std::int64_t>(0, ceil_div(rest, threads));
  row.kept = static_cast<int>(std::min(kept, std::int64_t{1} << 16));
  return row;
}

/// Two rows of a multiprocessor at once where there is room, so that one is computed while the
/// other is loaded or stored; else one; nothing when not even that has room.
std::optional<KeptRow> plan_kept_row(const SoftmaxJob& job, int pack) {
  const auto attribute = [&](CUdevice_attribute which) { return job.device().attribute(which); };
  const int wanted = choose(LaunchChoice::softmax_kept_threads, job.device(), job.extent.n,
                            scalar_size(job.x.type()), kKeptThreads / 2);
  const KeptRow two = kept_row(job, pack, kKeptThreads / 2);
  const KeptRow one = kept_row(job, pack, kKeptThreads);
  const std::int64_t both = 2 * std::int64_t{two.shared_bytes() + kKeptReserve};
  if (wanted < kKeptThreads &&
      both <= attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR))
    return two;
  const std::int64_t all = std::int64_t{one.shared_bytes()} + kKeptReserve;
  if (all <= attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)) return one;
  return std::nullopt;
}

/// Elements of the units of shifted rows.
constexpr int kShiftedPack = 8;

/// For rows of 16-bit elements that no pack divides: aligned units of 16 bytes are loaded and
/// stored. Shorter rows took longer so than by single elements (H200).
std::optional<KeptRow> plan_shifted_row(const SoftmaxJob& job, int pack) {
  const bool is_narrow = job.x.type() == job.out.type() && scalar_size(job.x.type()) == 2;
  if (pack > 1 || !is_narrow || job.mask) return std::nullopt;
  std::optional<KeptRow> row = plan_kept_row(job, kShiftedPack);
  if (row) row->is_shifted = true;
  return row;
}

void launch_softmax_kept(const SoftmaxJob& job, int pack, const KeptRow& row) {
  const Kernel& kernel = softmax_part(SoftmaxPart::kept, job, pack, row.items, 0, row.threads,
                                      {.is_shifted = row.is_shifted})
                             .on(job.device());
  const std::uint32_t blocks = RowTile{.width = 1, .threads = 1}.blocks(job.extent.rows);
  const auto shared = static_cast<std::size_t>(row.shared_bytes());
  dispatch_scale(job.x.type(), job.scale, [&](auto scale) {
    launch(kernel, softmax_config(job, blocks, row.threads, shared), job.out.address(),
           job.x.address(), job.view(), job.extent.rows, static_cast<std::int32_t>(job.extent.n),
           static_cast<std::int32_t>(row.kept), scale);
  });
}

void launch_softmax_cluster(const SoftmaxJob& job, const RowCluster& plan) {
  const Kernel& kernel =
      softmax_part(SoftmaxPart::cluster, job, plan.pack, plan.items, 0, plan.threads)
          .on(job.device());
  LaunchConfig config = plan.config(job.extent.rows, job.stream);
  config.programmatic_dependent = overlaps_small_launches(job.device(), config.grid.x);
  dispatch_scale(job.x.type(), job.scale, [&](auto scale) {
    launch(kernel, config, job.out.address(), job.x.address(), job.mask_address(), job.view(),
           static_cast<std::int32_t>(job.extent.n), plan.blocks,
           static_cast<std::int32_t>(plan.part), job.mask_step(), scale);
  });
}

void launch_softmax_shared(const SoftmaxJob& job, int pack) {
  const RowChunks plan = chunk_rows(job.device(), job.extent, pack, 16);
  const bool wide = job.x.type() == ScalarType::float64;
  const Array sums = Array::empty(job.device(), {job.extent.rows, plan.chunks, 2},
                                  wide ? ScalarType::float64 : ScalarType::float32, job.stream);
  const LaunchConfig config = softmax_config(job, plan.blocks, kChunkThreads);
  const auto kernel = [&](SoftmaxPart kind) -> const Kernel& {
    return softmax_part(kind, job, pack, plan.items, 0, kChunkThreads).on(job.device());
  };
  dispatch_scale(job.x.type(), job.scale, [&](auto scale) {
    launch(kernel(SoftmaxPart::sums), config, sums.address(), job.x.address(), job.mask_address(),
           job.view(), job.extent.n, plan.chunks, job.mask_step(), scale);
    launch(kernel(SoftmaxPart::finish), config, job.out.address(), job.x.address(),
           job.mask_address(), job.view(), job.extent.n, plan.chunks, job.mask_step(), scale,
           sums.address());
  });
  sums.use_on(job.stream);
}

void run_softmax_rows(const SoftmaxJob& job) {
  const int pack = common_pack(job.extent.n, {&job.x, &job.out});
  const bool wide = job.x.type() == ScalarType::float64;
  const int values = choose(LaunchChoice::softmax_values, job.device(), job.extent.n,
                            scalar_size(job.x.type()), wide ? 8 : 16);
  const RowTile tile = tile_rows_by_warps(job.device(), job.extent, pack, values);
  // A thread of a block of more than 512 threads has no registers for twice as many values.
  const bool full = tile.items == 0 || (tile.width > 512 && tile.items * pack > values);
  const auto kept = full && !job.mask ? plan_kept_row(job, pack) : std::nullopt;
  const bool few = are_few_and_long(job.device(), job.extent);
  if (!few && !full) return launch_softmax_rows(job, tile);
  if (const auto shifted = few ? std::nullopt : plan_shifted_row(job, pack))
    return launch_softmax_kept(job, kShiftedPack, *shifted);
  if (!few && kept && pack > 1) return launch_softmax_kept(job, pack, *kept);
  if (!few && tile.items > 0) return launch_softmax_rows(job, tile);
  if (const auto cluster = cluster_rows(job.device(), job.extent, pack, wide ? 16 : 32)) {
    launch_softmax_cluster(job, *cluster);
  } else if (!few && kept) {
    launch_softmax_kept(job, pack, *kept);
  } else {
    launch_softmax_shared(job, pack);
  }
}

void run_softmax_columns(const SoftmaxJob& job, std::int64_t inner) {
  constexpr int kThreads = 256, kColumns = 32;
  const std::int64_t columns = job.extent.rows;
  const std::uint32_t blocks = RowTile{.width = 1, .threads = kColumns}.blocks(columns);
  const Kernel& kernel = softmax_part(SoftmaxPart::columns, job, 0, 0, 0, 0).on(job.device());
  dispatch_scale(job.x.type(), job.scale, [&](auto scale) {
    launch(kernel, softmax_config(job, blocks, kThreads), job.out.address(), job.x.address(),
           columns, job.extent.n, inner, scale);
  });
}

/// Whether the row kernels can read it as it is: elements side by side, and not too many strides.
bool has_softmax_rows(const Array& x, const std::optional<Array>& mask) {
  const auto size = static_cast<std::int64_t>(scalar_size(x.type()));
  if (x.shape().back() > 1 && x.strides().back() != size) return false;
  return common_pack(x.shape().back(), {&x}) > 0 && pair_rows(x, mask ? *mask : x).has_value();
}

void run_softmax(SoftmaxJob job, int axis) {
  const Shape& shape = job.x.shape();
  job.extent.n = shape[static_cast<std::size_t>(axis)];
  job.extent.rows = job.x.size() / job.extent.n;
  const std::int64_t inner =
      std::accumulate(shape.begin() + axis + 1, shape.end(), std::int64_t{1}, std::multiplies<>());
  if (inner > 1 && job.mask) {
    const std::vector<int> axes = axis_last(job.x.ndim(), axis);
    SoftmaxJob last = job;
    last.x = copy(job.x.transpose(axes), job.stream);
    last.mask = job.mask->transpose(axes);
    last.out = Array::empty(job.device(), last.x.shape(), job.out.type(), job.stream);
    run_softmax(last, job.x.ndim() - 1);
    copy_elements(job.out, last.out.transpose(last_back(job.x.ndim(), axis)), job.stream);
    return;
  }
  if (inner > 1) {
    if (!job.x.is_contiguous() || common_pack(1, {&job.x}, 0) == 0) job.x = copy(job.x, job.stream);
    run_softmax_columns(job, inner);
  } else {
    // Behind the axis are extents of 1 only.
    while (job.x.ndim() > axis + 1) {
      job.x = job.x.drop_axis(axis + 1, 0);
      job.out = job.out.drop_axis(axis + 1, 0);
      if (job.mask) job.mask = job.mask->drop_axis(axis + 1, 0);
    }
    if (!has_softmax_rows(job.x, job.mask)) {
      job.x = copy(job.x, job.stream);
      if (job.mask) job.mask = copy(*job.mask, job.stream);
    }
    run_softmax_rows(job);
  }
  for (const Array* const each : {&job.out, &job.x}) each->use_on(job.stream);
  if (job.mask) job.mask->use_on(job.stream);
}

void check_softmax(const Array& x, const SoftmaxOptions& options) {
  const char* const what = options.log ? "log_softmax()" : "softmax()";
  require_computed(x, what, "x");
  if (options.type && !is_computed(*options.type)) {
    throw InvalidArgument(format("{} returns float16, bfloat16, float32 or float64, not {}", what,
                                 scalar_name(*options.type)));
  }
  if (options.mask) {
    if (options.mask->type() != ScalarType::boolean) require_computed(*options.mask, what, "mask");
    if (options.mask->shape() != x.shape() || &options.mask->device() != &x.device()) {
      throw InvalidArgument(
          format("Incompatible dimensions: {} takes x and a mask of the same shape "
                 "on the same device, got {} and {}",
                 what, x.identify(), options.mask->identify()));
    }
  }
  if (!options.out) return;
  const ScalarType type = options.type.value_or(options.out->type());
  if (options.out->shape() != x.shape() || options.out->type() != type || !is_computed(type) ||
      &options.out->device() != &x.device()) {
    throw InvalidArgument(
        format("{} of {} cannot write {} results to {}: shape, dtype and device "
               "must be the same",
               what, x.identify(), scalar_name(type), options.out->identify()));
  }
  if (options.out->read_only())
    throw InvalidArgument(format("cannot write to {}: it is read-only", options.out->identify()));
}

}  // namespace

Array softmax(const Array& x, int axis, const SoftmaxOptions& options, const Stream& stream) {
  check_softmax(x, options);
  axis = normalize_axis(axis, x.ndim());
  const Stream on = stream ? stream : Stream::legacy(x.device());
  const bool direct = options.out && options.out->is_contiguous() &&
                      !may_overlap(*options.out, x) &&
                      !(options.mask && may_overlap(*options.out, *options.mask));
  const ScalarType type = options.out ? options.out->type() : options.type.value_or(x.type());
  Array result = direct ? *options.out : Array::empty(x.device(), x.shape(), type, on);
  if (x.size() > 0) {
    run_softmax({.out = result,
                 .x = x,
                 .mask = options.mask,
                 .extent = {},
                 .scale = options.scale,
                 .log = options.log,
                 .stream = on},
                axis);
  }
  if (!options.out || direct) return result;
  copy_elements(*options.out, result, on);
  return *options.out;
}

}  // namespace kernwright::kernels
