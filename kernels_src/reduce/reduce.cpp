// Checks a call, plans it, and launches one kernel.
#include "kernels_src/reduce/reduce.h"

#include "array/shape.h"
#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"
#include "kernels_src/axes.h"
#include "kernels_src/copy/copy.h"
#include "kernels_src/family.h"
#include "kernels_src/launch_choices.h"
#include "kernels_src/reduce/reduce.cu.h"
#include "kernels_src/reduce/reduce_plan.h"
#include "kernels_src/zeroed_words.h"

#include <algorithm>
#include <array>
#include <bit>
#include <string>
#include <vector>

namespace kernwright::kernels {

namespace {

/// Parameters of the kernels, laid out as in reduce.cu.
template <typename Index>
struct ReduceParameters {
  AxesWalk kept, reduced;
  Index outputs, length, segment, segments;
  std::int32_t lanes;
  double count;
  double parameter;
};

/// Partial of reduce.cu.
struct ReducePartial {
  CUdeviceptr states = 0, arrived = 0, posted = 0;
};

/// Counts below this fit 32 bits with what a thread looks ahead.
constexpr std::int64_t kNarrowReduction = (std::int64_t{1} << 31) - (std::int64_t{1} << 20);

const LazyKernel& reduce_kernel(const ReducePlan& plan, const ReductionTypes& types, bool wide) {
  static const auto& family = *new Family("reduce.cu", text::reduce_cu);
  const auto key = InstanceKey()
                       .add(plan.rows, 1)
                       .add(types.op, 5)
                       .type(types.in)
                       .type(types.as)
                       .add(std::countr_zero(static_cast<unsigned>(plan.pack)), 3)
                       .add(std::countr_zero(static_cast<unsigned>(plan.loads)), 2)
                       .add(plan.access, 2)
                       .add(wide, 1);
  return family.instance(key, [&] {
    const std::string reducer = reducer_expression(types, wide);
    const char* const index = wide ? "unsigned long long" : "unsigned int";
    if (!plan.rows) return format("reduce_columns<{}, {}, {}>", reducer, plan.pack, index);
    constexpr std::array access = {"kWalked", "kAligned", "kUnaligned"};
    return format("reduce_rows<{}, {}, {}, {}, {}>", reducer, plan.pack, plan.loads,
                  access[static_cast<std::size_t>(plan.access)], index);
  });
}

/// The reduced axes. Throws InvalidArgument for missing or repeated axes.
std::vector<bool> axes_that_go(const Array& array, const ReductionCall& call) {
  std::vector<bool> goes(static_cast<std::size_t>(array.ndim()), !call.axes.has_value());
  if (!call.axes) return goes;
  for (const int axis : *call.axes) {
    const auto at = static_cast<std::size_t>(normalize_axis(axis, array.ndim()));
    if (goes[at]) {
      throw InvalidArgument(format("{}() over axis {} twice, of {}", reduction_name(call.op), axis,
                                   array.identify()));
    }
    goes[at] = true;
  }
  if (is_place(call.op) && call.axes->size() != 1) {
    throw InvalidArgument(format("{}() takes one axis, or none for all of the array: got {} axes",
                                 reduction_name(call.op), call.axes->size()));
  }
  return goes;
}

Shape reduced_shape(const Shape& shape, const std::vector<bool>& goes, bool keepdims) {
  Shape result;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (!goes[i]) result.push_back(shape[i]);
    if (goes[i] && keepdims) result.push_back(1);
  }
  return result;
}

/// The strides of `to` for the axes that stay.
Shape reduced_strides(const Array& to, const std::vector<bool>& goes, bool keepdims) {
  if (!keepdims) return to.strides();
  Shape strides;
  for (std::size_t i = 0; i < goes.size(); ++i) {
    if (!goes[i]) strides.push_back(to.strides()[i]);
  }
  return strides;
}

void require_reduced_elements(const Array& array, const std::vector<bool>& goes,
                              const ReductionCall& call) {
  if (has_identity(call.op)) return;
  for (std::size_t i = 0; i < goes.size(); ++i) {
    if (!goes[i] || array.shape()[i] != 0) continue;
    throw InvalidArgument(
        format("{}() over axis {} of {}: it has no elements, and none of them is the result",
               reduction_name(call.op), i, array.identify()));
  }
}

/// One reduction that is ready to be launched.
class ReduceLauncher {
 public:
  ReduceLauncher(const Array& to, const ReductionTypes& types, double parameter,
                 const Stream& stream)
      : to_(to), types_(types), parameter_(parameter), stream_(stream) {}

  void run(const AxesPlan& axes) const {
    const std::int64_t elements = std::max(axes.outputs(), axes.outputs() * axes.length());
    if (elements < kNarrowReduction) {
      run_as<std::uint32_t>(axes);
    } else {
      run_as<std::uint64_t>(axes);
    }
  }

 private:
  template <typename Index>
  ReduceParameters<Index> parameters(const AxesPlan& axes, const ReducePlan& plan) const {
    return {.kept = walk_parameter<kMaxAxes>(axes.kept),
            .reduced = walk_parameter<kMaxAxes>(axes.reduced),
            .outputs = static_cast<Index>(axes.outputs()),
            .length = static_cast<Index>(axes.length()),
            .segment = static_cast<Index>(plan.segment),
            .segments = static_cast<Index>(plan.segments),
            .lanes = static_cast<std::int32_t>(plan.lanes),
            .count = static_cast<double>(axes.length()),
            .parameter = parameter_};
  }

  LaunchConfig grid(std::int64_t blocks) const {
    return {.grid = {static_cast<std::uint32_t>(blocks)},
            .block = {static_cast<std::uint32_t>(kReduceBlock)},
            .stream = stream_,
            .programmatic_dependent = overlaps_small_launches(to_.device(), blocks)};
  }

  template <typename Index>
  void run_as(const AxesPlan& axes) const {
    constexpr bool wide = sizeof(Index) == 8;
    Device& device = to_.device();
    const std::size_t size = scalar_size(types_.in);
    const LaunchChoice choice = axes.outputs() == 1 ? LaunchChoice::reduce_all_blocks
                                : reads_rows(axes)  ? LaunchChoice::reduce_row_blocks
                                                    : LaunchChoice::reduce_column_blocks;
    const int rule = choice == LaunchChoice::reduce_column_blocks ? kColumnBlocksPerProcessor
                                                                  : kReduceBlocksPerProcessor;
    const ReducePlan plan =
        plan_reduction(axes, size, device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
                       choose(choice, device, axes.length(), size, rule));
    const Shared shared = plan.segments == 1 ? Shared() : shared_by_blocks(axes, plan, wide);
    const CUdeviceptr to = to_.address();
    const Kernel& kernel = reduce_kernel(plan, types_, wide).on(device);
    ReduceParameters<Index> launch_parameters = parameters<Index>(axes, plan);
    if (plan.rows) {
      launch(kernel, grid(plan.blocks), to, axes.from, shared.partial, launch_parameters);
    } else {
      const long long apart = launch_parameters.kept.stride[0][kTo];
      WalkDims<2> packs = axes.kept;
      pack_dims(packs, plan.pack);
      launch_parameters.kept = walk_parameter<kMaxAxes>(packs);
      launch(kernel, grid(plan.blocks), to, axes.from, shared.partial, launch_parameters, apart);
    }
    shared.states.use_on(stream_);
    shared.words.use_on(stream_);
  }

  /// Memory in which blocks at work on one result leave values for each other.
  struct Shared {
    ReducePartial partial;
    Array states, words;
  };

  Shared shared_by_blocks(const AxesPlan& axes, const ReducePlan& plan, bool wide) const {
    Shared shared;
    const auto state = static_cast<std::int64_t>(state_size(types_, wide));
    if (plan.rows && axes.outputs() == 1 && plan.segments <= kReduceBlock) {
      // A word of 64 bits for each one of a state.
      shared.words = zeroed_words(static_cast<std::size_t>(plan.segments * state / 2), stream_);
      shared.partial.posted = shared.words.address();
      return shared;
    }
    shared.states = Array::empty(to_.device(), {plan.segments * axes.outputs() * state},
                                 ScalarType::uint8, stream_);
    shared.words = zeroed_words(static_cast<std::size_t>(plan.blocks / plan.segments), stream_);
    shared.partial.states = shared.states.address();
    shared.partial.arrived = shared.words.address();
    return shared;
  }

  const Array& to_;
  const ReductionTypes types_;
  const double parameter_;
  const Stream stream_;
};

/// The kept axes, then the reduced ones.
Array kept_axes_first(const Array& array, const std::vector<bool>& goes, const Stream& stream) {
  std::vector<int> order(goes.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  std::stable_partition(order.begin(), order.end(),
                        [&](int axis) { return !goes[static_cast<std::size_t>(axis)]; });
  return copy(array.transpose(order), stream);
}

/// Into `to`, of the shape and type that it must have.
void reduce_planned(const Array& to, const Array& array, const std::vector<bool>& goes,
                    const ReductionCall& call, const ReductionTypes& types, const Stream& stream) {
  require_reduced_elements(array, goes, call);
  if (to.size() == 0) return;
  const Stream on = stream ? stream : Stream::legacy(array.device());
  const AxesPlan axes =
      plan_axes(array, goes, reduced_strides(to, goes, call.keepdims), is_place(call.op));
  if (!axes.fits()) {
    // Too many axes for a kernel: a copy with the reduced axes last leaves at most one of each.
    std::vector<bool> last(goes.size(), false);
    const auto going = static_cast<std::ptrdiff_t>(std::count(goes.begin(), goes.end(), true));
    std::fill(last.end() - going, last.end(), true);
    const Array flat =
        Array::empty(array.device(), reduced_shape(array.shape(), goes, false), types.out, stream);
    ReductionCall bare = call;
    bare.keepdims = false;
    reduce_planned(flat, kept_axes_first(array, goes, stream), last, bare, types, stream);
    return copy_elements(to, flat.reshape(to.shape()), stream);
  }
  ReduceLauncher(to, types, call.parameter, on).run(axes);
  to.use_on(on);
  array.use_on(on);
}

}  // namespace

Array reduce(const Array& array, const ReductionCall& call, const Stream& stream) {
  const ReductionTypes types = reduction_types(call.op, array.type(), call.type);
  const std::vector<bool> goes = axes_that_go(array, call);
  const Array result = Array::empty(
      array.device(), reduced_shape(array.shape(), goes, call.keepdims), types.out, stream);
  reduce_planned(result, array, goes, call, types, stream);
  return result;
}

void write_reduction(const Array& to, const Array& array, const ReductionCall& call,
                     const Stream& stream) {
  const ReductionTypes types = reduction_types(call.op, array.type(), call.type);
  const std::vector<bool> goes = axes_that_go(array, call);
  const Shape shape = reduced_shape(array.shape(), goes, call.keepdims);
  if (to.shape() != shape || to.type() != types.out || &to.device() != &array.device()) {
    throw InvalidArgument(
        format("{}() of {} gives {} of shape {} on the same device: it does not "
               "go into {}",
               reduction_name(call.op), array.identify(), scalar_name(types.out),
               shape_to_string(shape), to.identify()));
  }
  if (to.read_only()) {
    throw InvalidArgument(format("cannot write to {}: it is read-only", to.identify()));
  }
  // NOTE: other threads may still read while one writes there. The copy refuses repeated elements.
  if (may_overlap(to, array) || repeats_elements(to)) {
    return copy_elements(to, reduce(array, call, stream), stream);
  }
  reduce_planned(to, array, goes, call, types, stream);
}

}  // namespace kernwright::kernels
