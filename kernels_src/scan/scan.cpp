// Checks a scan, plans it, and launches its kernels.
#include "kernels_src/scan/scan.h"

#include "array/shape.h"
#include "base/errors.h"
#include "base/format.h"
#include "base/math.h"
#include "core/device.h"
#include "kernels_src/axes.h"
#include "kernels_src/copy/copy.h"
#include "kernels_src/family.h"
#include "kernels_src/scan/scan.cu.h"
#include "kernels_src/scan/scan_flow.cu.h"
#include "kernels_src/scan/scan_plan.h"
#include "kernels_src/zeroed_words.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <string>
#include <vector>

namespace kernwright::kernels {

namespace {

/// Laid out as ScanParameters<Index> of include/scan/scan_parts.cuh.
template <typename Index>
struct ScanParameters {
  AxesWalk kept;
  std::int64_t from, to;
  Index rows, length, segment, segments;
  std::int32_t initial;
};

/// Laid out as Board of scan.cu.
struct ScanBoard {
  CUdeviceptr ticket, done, flag, group_flag, tile_values, total, whole;
};
/// Laid out as Posts of scan.cu.
struct ScanPosts {
  CUdeviceptr ticket, done, tile_values;
};

/// Counts below this fit 32 bits with what a thread looks ahead.
constexpr std::int64_t kNarrowScan = (std::int64_t{1} << 31) - (std::int64_t{1} << 20);
/// The largest Carry.
constexpr std::int64_t kCarrySize = 16;

struct ScanTypes {
  ScalarType in, as;
};

struct ScanRow {
  std::string_view name;
  const char* operation;
};
// In the order of Scan.
constexpr std::array kScanRows = {
    ScanRow{"cumulative_sum", "RunningSum"},
    ScanRow{"cumulative_prod", "RunningProduct"},
    ScanRow{"cumulative_max", "RunningMaximum"},
    ScanRow{"cumulative_min", "RunningMinimum"},
};

enum class ScanPart { rows, few_tiles, tiles, flow, columns, carries };

/// `has_carries`: the kernel for joining segments follows the kernel of columns.
/// `together`: no tile of few_tiles waits for a block that has not started.
const LazyKernel& scan_kernel(ScanPart part, Scan op, const ScanTypes& types, int pack, int steps,
                              bool wide, bool has_carries, bool together) {
  static const auto& whole = *new Family("scan.cu", text::scan_cu);
  static const auto& flow = *new Family("scan_flow.cu", text::scan_flow_cu);
  const Family& family = part == ScanPart::flow ? flow : whole;
  const auto key = InstanceKey()
                       .add(part, 3)
                       .add(op, 2)
                       .type(types.in)
                       .type(types.as)
                       .add(std::countr_zero(static_cast<unsigned>(pack)), 3)
                       .add(std::countr_zero(static_cast<unsigned>(steps)), 3)
                       .add(wide, 1)
                       .add(together, 1);
  return family.instance(key, [&] {
    const std::string operation =
        format("{}<{}, {}>", kScanRows[static_cast<std::size_t>(op)].operation,
               device_type(types.in), device_type(types.as));
    const char* const index = wide ? "unsigned long long" : "unsigned int";
    const std::string carries = format("scan_carries<{}, {}>", operation, index);
    switch (part) {
      case ScanPart::rows:
        return std::vector{format("scan_rows<{}, {}, {}, {}>", operation, pack, steps, index)};
      case ScanPart::few_tiles:
        return std::vector{
            format("scan_few_tiles<{}, {}, {}, {}, {}>", operation, pack, steps, index, together)};
      case ScanPart::tiles:
        return std::vector{format("scan_tiles<{}, {}, {}, {}>", operation, pack, steps, index)};
      case ScanPart::flow:
        return std::vector{format("scan_flow<{}, {}, {}, {}>", operation, pack, steps, index)};
      case ScanPart::carries:
        return std::vector{carries};
      default:
        break;
    }
    std::vector names{format("scan_columns<{}, {}, {}>", operation, pack, index)};
    if (has_carries) names.push_back(carries);
    return names;
  });
}

ScanTypes scan_types(const ScanCall& call, ScalarType in) {
  if (call.op == Scan::max || call.op == Scan::min) {
    if (is_complex(in)) {
      throw InvalidArgument(
          format("{}() of {}: complex numbers have no order", scan_name(call.op), scalar_name(in)));
    }
    return {in, in};
  }
  ScalarType as = in;
  if (is_signed_integer(in) || in == ScalarType::boolean) as = ScalarType::int64;
  if (is_unsigned_integer(in)) as = ScalarType::uint64;
  as = call.type.value_or(as);
  if (as == ScalarType::boolean) {
    throw InvalidArgument(format("{}() as bool: choose the dtype of a number", scan_name(call.op)));
  }
  return {in, as};
}

int scanned_axis(const Array& array, const ScanCall& call) {
  if (array.ndim() == 0) {
    throw InvalidArgument(format("{}() of an array without dimensions: reshape it to (1,) first",
                                 scan_name(call.op)));
  }
  return normalize_axis(call.axis, array.ndim());
}

Shape scanned_shape(const Array& array, int axis, bool initial) {
  Shape shape = array.shape();
  shape[static_cast<std::size_t>(axis)] += initial ? 1 : 0;
  return shape;
}

/// One scan that is ready to be launched.
class ScanLauncher {
 public:
  ScanLauncher(const Array& to, const ScanCall& call, const ScanTypes& types, const Stream& stream)
      : to_(to), call_(call), types_(types), stream_(stream) {}

  void run(const AxesPlan& axes, const Axis& axis) const {
    if (axes.outputs() * std::max<std::int64_t>(axis.extent, 1) < kNarrowScan) {
      run_as<std::uint32_t>(axes, axis);
    } else {
      run_as<std::uint64_t>(axes, axis);
    }
  }

 private:
  template <typename Index>
  void run_as(const AxesPlan& axes, const Axis& axis) const {
    const ScanPlan plan = plan_scan(
        axes, axis, {scalar_size(types_.in), scalar_size(types_.as), value_size()},
        {.processors = processors(),
         .shared = to_.device().attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)});
    ScanParameters<Index> scan_parameters{.kept = walk_parameter<kMaxAxes>(axes.kept),
                                          .from = axis.stride[kFrom],
                                          .to = axis.stride[kTo],
                                          .rows = static_cast<Index>(axes.outputs()),
                                          .length = static_cast<Index>(axis.extent),
                                          .segment = static_cast<Index>(plan.segment),
                                          .segments = static_cast<Index>(plan.segments),
                                          .initial = call_.initial};
    const CUdeviceptr to =
        to_.address() + static_cast<CUdeviceptr>(call_.initial ? axis.stride[kTo] : 0);
    if (plan.path == ScanPath::columns) return run_columns(axes, plan, scan_parameters, to);
    if (plan.path == ScanPath::tiles) return run_tiles(axes, plan, scan_parameters, to);
    if (plan.path == ScanPath::flow) return run_flow(axes, plan, scan_parameters, to);
    if (plan.path == ScanPath::few_tiles) return run_few_tiles(axes, plan, scan_parameters, to);
    launch(kernel<Index>(ScanPart::rows, plan),
           small_grid(axes.outputs(), kRowThreads / 32, kRowThreads), to, axes.from,
           scan_parameters);
  }

  template <typename Index>
  void run_few_tiles(const AxesPlan& axes, const ScanPlan& plan,
                     const ScanParameters<Index>& scan_parameters, CUdeviceptr to) const {
    const std::int64_t tiles = axes.outputs() * plan.tiles;
    Array words;
    ScanPosts posts{};
    const bool together = plan.tiles == 1 || tiles <= multiprocessors_of(stream_, to_.device());
    if (plan.tiles > 1) {
      // A word of 64 bits for each one of a carry.
      words = zeroed_words(static_cast<std::size_t>(2 + tiles * kCarrySize / 2), stream_);
      posts = {words.address(), words.address() + 4, words.address() + 8};
    }
    launch(kernel<Index>(ScanPart::few_tiles, plan, together),
           together ? small_grid(tiles, 1, kTileThreads) : grid(tiles, 1, kTileThreads), to,
           axes.from, scan_parameters, posts, static_cast<std::uint32_t>(plan.tiles));
    words.use_on(stream_);
  }

  template <typename Index>
  void run_flow(const AxesPlan& axes, const ScanPlan& plan,
                const ScanParameters<Index>& scan_parameters, CUdeviceptr to) const {
    const std::int64_t tiles = axes.outputs() * plan.tiles;
    const Array words = zeroed_words(static_cast<std::size_t>(2 + tiles * kCarrySize / 2), stream_);
    const ScanPosts posts{words.address(), words.address() + 4, words.address() + 8};
    const std::int64_t blocks = std::min<std::int64_t>(tiles, kFlowBlocks * processors());
    LaunchConfig config = grid(blocks, 1, kFlowThreads);
    config.shared_bytes = static_cast<std::uint32_t>(kFlowTiles * kFlowThreads * plan.steps * 16);
    launch(kernel<Index>(ScanPart::flow, plan), config, to, axes.from, scan_parameters, posts,
           static_cast<std::uint32_t>(plan.tiles), static_cast<std::uint32_t>(tiles));
    words.use_on(stream_);
  }

  template <typename Index>
  void run_tiles(const AxesPlan& axes, const ScanPlan& plan,
                 const ScanParameters<Index>& scan_parameters, CUdeviceptr to) const {
    const std::int64_t tiles = axes.outputs() * plan.tiles;
    const std::int64_t groups = axes.outputs() * ((plan.tiles + 31) / 32);
    const Array words = zeroed_words(static_cast<std::size_t>(2 + tiles + groups), stream_);
    const Array carries =
        Array::empty(to_.device(), {(tiles + 2 * groups) * kCarrySize}, ScalarType::uint8, stream_);
    const auto after = [](CUdeviceptr begin, std::int64_t count, std::int64_t size) {
      return begin + static_cast<CUdeviceptr>(count * size);
    };
    ScanBoard all{};
    all.ticket = words.address();
    all.done = after(all.ticket, 1, 4);
    all.flag = after(all.done, 1, 4);
    all.group_flag = after(all.flag, tiles, 4);
    all.tile_values = carries.address();
    all.total = after(all.tile_values, tiles, kCarrySize);
    all.whole = after(all.total, groups, kCarrySize);
    launch(kernel<Index>(ScanPart::tiles, plan), grid(tiles, 1, kTileThreads), to, axes.from,
           scan_parameters, all, static_cast<std::uint32_t>(plan.tiles));
    carries.use_on(stream_);
    words.use_on(stream_);
  }

  template <typename Index>
  void run_columns(const AxesPlan& axes, const ScanPlan& plan,
                   ScanParameters<Index> scan_parameters, CUdeviceptr to) const {
    const std::int64_t apart = scan_parameters.kept.stride[0][kTo];
    WalkDims<2> packs = axes.kept;
    pack_dims(packs, plan.pack);
    scan_parameters.kept = walk_parameter<kMaxAxes>(packs);
    const auto pass = [&](CUdeviceptr carries, std::int32_t number) {
      const std::int64_t threads = axes.outputs() / plan.pack * plan.segments;
      launch(kernel<Index>(ScanPart::columns, plan),
             small_grid(threads, kColumnThreads, kColumnThreads), to, axes.from, carries,
             scan_parameters, apart, number);
    };
    if (plan.segments == 1) return pass(0, 0);
    const Array carries = Array::empty(to_.device(), {axes.outputs() * plan.segments * kCarrySize},
                                       ScalarType::uint8, stream_);
    pass(carries.address(), 1);
    launch(kernel<Index>(ScanPart::carries, {}),
           small_grid(axes.outputs(), kColumnThreads, kColumnThreads), carries.address(),
           scan_parameters.rows, scan_parameters.segments);
    pass(carries.address(), 2);
    carries.use_on(stream_);
  }

  template <typename Index>
  const Kernel& kernel(ScanPart part, const ScanPlan& plan, bool together = false) const {
    return scan_kernel(part, call_.op, types_, plan.pack, plan.steps, sizeof(Index) == 8,
                       plan.segments > 1, together)
        .on(to_.device());
  }

  /// Bytes of `Value` in running.cuh: sums and products of 32-bit integers have 64 bits.
  std::size_t value_size() const {
    const bool adds = call_.op == Scan::sum || call_.op == Scan::prod;
    const bool is_short = types_.as == ScalarType::int32 || types_.as == ScalarType::uint32;
    return adds && is_short ? 8 : scalar_size(types_.as);
  }

  int processors() const {
    return to_.device().attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  }

  LaunchConfig grid(std::int64_t count, std::int64_t in_block, std::int64_t threads) const {
    return {.grid = {static_cast<std::uint32_t>(ceil_div(count, in_block))},
            .block = {static_cast<std::uint32_t>(threads)},
            .stream = stream_};
  }
  /// For kernels that wait for the one ahead, as those of PDL do.
  LaunchConfig small_grid(std::int64_t count, std::int64_t in_block, std::int64_t threads) const {
    LaunchConfig config = grid(count, in_block, threads);
    config.programmatic_dependent = overlaps_small_launches(to_.device(), config.grid.x);
    return config;
  }

  const Array& to_;
  const ScanCall& call_;
  const ScanTypes types_;
  const Stream stream_;
};

void scan_planned(const Array& to, const Array& array, int axis, const ScanCall& call,
                  const ScanTypes& types, const Stream& stream);

/// By way of an array whose scanned axis is the last and the only one beside another.
void scan_flattened(const Array& to, const Array& array, int axis, const ScanCall& call,
                    const ScanTypes& types, const Stream& stream) {
  std::vector<int> order(static_cast<std::size_t>(array.ndim()));
  std::iota(order.begin(), order.end(), 0);
  std::rotate(order.begin() + axis, order.begin() + axis + 1, order.end());
  const Array moved = copy(array.transpose(order), stream);
  const Array target = to.transpose(order);
  const Array flat = Array::empty(array.device(), target.shape(), types.as, stream);
  // The result has elements, also where the array has none.
  const std::int64_t width = target.shape().back(), rows = target.size() / width;
  scan_planned(flat.reshape({rows, width}), moved.reshape({rows, moved.shape().back()}), 1, call,
               types, stream);
  copy_elements(target, flat, stream);
}

/// Into `to`, of the shape and type that it must have.
void scan_planned(const Array& to, const Array& array, int axis, const ScanCall& call,
                  const ScanTypes& types, const Stream& stream) {
  if (to.size() == 0) return;
  const Stream on = stream ? stream : Stream::legacy(array.device());
  const auto at = static_cast<std::size_t>(axis);
  std::vector<bool> goes(array.shape().size(), false);
  goes[at] = true;
  Shape strides = to.strides();
  strides.erase(strides.begin() + axis);
  const AxesPlan axes = plan_axes(array, goes, strides, true);
  if (!axes.fits()) return scan_flattened(to, array, axis, call, types, stream);
  const Axis along{array.shape()[at], {to.strides()[at], array.strides()[at]}};
  ScanLauncher(to, call, types, on).run(axes, along);
  to.use_on(on);
  array.use_on(on);
}

}  // namespace

std::string_view scan_name(Scan op) noexcept {
  return kScanRows[static_cast<std::size_t>(op)].name;
}

std::optional<Scan> scan_from_name(std::string_view name) noexcept {
  for (std::size_t i = 0; i < kScanRows.size(); ++i) {
    if (kScanRows[i].name == name) return static_cast<Scan>(i);
  }
  return std::nullopt;
}

Array scan(const Array& array, const ScanCall& call, const Stream& stream) {
  const ScanTypes types = scan_types(call, array.type());
  const int axis = scanned_axis(array, call);
  const Array result =
      Array::empty(array.device(), scanned_shape(array, axis, call.initial), types.as, stream);
  scan_planned(result, array, axis, call, types, stream);
  return result;
}

void write_scan(const Array& to, const Array& array, const ScanCall& call, const Stream& stream) {
  const ScanTypes types = scan_types(call, array.type());
  const int axis = scanned_axis(array, call);
  const Shape shape = scanned_shape(array, axis, call.initial);
  if (to.shape() != shape || to.type() != types.as || &to.device() != &array.device()) {
    throw InvalidArgument(
        format("{}() of {} gives {} of shape {} on the same device: it does not "
               "go into {}",
               scan_name(call.op), array.identify(), scalar_name(types.as), shape_to_string(shape),
               to.identify()));
  }
  if (to.read_only()) {
    throw InvalidArgument(format("cannot write to {}: it is read-only", to.identify()));
  }
  if (may_overlap(to, array) || repeats_elements(to)) {
    return copy_elements(to, scan(array, call, stream), stream);
  }
  scan_planned(to, array, axis, call, types, stream);
}

}  // namespace kernwright::kernels
