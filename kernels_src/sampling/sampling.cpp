// Plans of sampling: rows in the kernels' layout, options shared by all rows beside options of each
// row, and blocks.
#include "kernels_src/sampling/sampling.h"

#include "base/errors.h"
#include "base/format.h"
#include "base/math.h"
#include "core/device.h"
#include "kernels_src/cast/cast.h"
#include "kernels_src/copy/copy.h"
#include "kernels_src/family.h"
#include "kernels_src/plans/planned_rows.h"
#include "kernels_src/sampling/sampling.cu.h"
#include "kernels_src/sort/rows.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

namespace kernwright::kernels {

namespace {

constexpr std::uint32_t kSamplingThreads = 1024;
constexpr std::uint32_t kSearchThreads = 256;
constexpr std::int64_t kMostTokens = std::int64_t{1} << 22;
constexpr std::uint64_t kSamplingPack = 4;
constexpr std::uint32_t kGroupTokens = 128;
constexpr std::uint32_t kBlockGroups = 128;  // a row of so many is left to one block
constexpr std::size_t kHistogramBytes = std::size_t{1024} * 12;

/// The settings in the kernel's layout.
struct SamplingSettings {
  float temperature, top_p, min_p, penalty;
  CUdeviceptr temperatures, top_ps, min_ps, penalties, top_ks, previous;
  std::uint64_t seed, step;
  CUdeviceptr counter, seeds, steps;
  std::int32_t top_k, previous_count;
  bool wide_previous, wide_out;
};

/// The scratch memory in the kernels' layout.
struct SamplingScratch {
  CUdeviceptr maxima, masses, seen, histograms, arrived;
};

/// How rows are spread: blocks of each kernel for a row. No search: one block takes a row alone.
struct SamplingPlan {
  std::uint32_t groups = 0;
  std::uint32_t searches = 0, searched = 0;  ///< blocks that find maxima, groups of each
  std::uint32_t draws = 1;                   ///< blocks that count or weigh tokens
};

const Family& sampling_family() {
  static const auto& family = *new Family("sampling.cu", text::sampling_cu);
  return family;
}

/// The kernel of the draw. With `spread`, one compile also makes the kernel of the maxima.
const LazyKernel& sampling_kernel(ScalarType type, bool packed, bool spread) {
  const auto name = [&](const char* kernel) {
    return format("{}<{}, {}>", kernel, device_type(type), packed ? "true" : "false");
  };
  const auto key = InstanceKey().type(type).add(packed, 1).add(spread, 1).add(0, 1);
  return sampling_family().instance(key, [&] {
    std::vector<std::string> names = {name("sample_rows")};
    if (spread) names.push_back(name("find_group_maxima"));
    return names;
  });
}

const LazyKernel& search_kernel(ScalarType type, bool packed) {
  return sampling_family().instance(
      InstanceKey().type(type).add(packed, 1).add(true, 1).add(1, 1), [&] {
        return format("find_group_maxima<{}, {}>", device_type(type), packed ? "true" : "false");
      });
}

SamplingPlan sampling_plan(const Device& device, std::int64_t rows, std::uint32_t tokens,
                           const SamplingOptions& options) {
  SamplingPlan plan;
  plan.groups = ceil_div(tokens, kGroupTokens);
  if (plan.groups <= kBlockGroups) return plan;
  const std::int64_t blocks = std::int64_t{2} * multiprocessors(device);
  const std::int64_t most = (plan.groups + 31) / 32;
  // Four groups for each of 8 warps, as loads under way; one where that leaves the device idle.
  plan.searched = rows * most >= 2 * blocks ? 32 : 8;
  plan.searches = ceil_div(plan.groups, plan.searched);
  const bool greedy = !options.temperature.each && !(options.temperature.value > 0);
  const std::int64_t k = options.top_k.value;
  const bool few = !options.top_k.each && k > 0 && k * 4 <= plan.groups;  // as the kernel says
  if (!greedy && !few)
    plan.draws =
        static_cast<std::uint32_t>(std::clamp(ceil_div(blocks, rows), std::int64_t{1}, most));
  return plan;
}

/// The logits as rows whose tokens follow each other.
Array sampling_rows(const Array& logits, const Stream& stream) {
  const std::int64_t tokens = logits.shape().back();
  const auto item = static_cast<std::int64_t>(scalar_size(logits.type()));
  if (logits.ndim() == 1 && logits.strides()[0] == item) return logits.insert_axis(0);
  const bool rows = logits.ndim() == 2 && (logits.strides()[1] == item || tokens == 1) &&
                    logits.strides()[0] >= 0 && logits.strides()[0] % item == 0;
  if (rows) return logits;
  const Array whole = logits.is_contiguous() ? logits : copy(logits, stream);
  return whole.reshape({logits.size() / tokens, tokens});
}

/// Keeps what a launch reads, as the kernel reads it.
class SamplingOperands {
 public:
  SamplingOperands(std::int64_t rows, const Stream& stream) : rows_(rows), stream_(stream) {}

  template <typename Value>
  CUdeviceptr add(const PerRow<Value>& values, ScalarType type, const char* name) {
    if (!values.each) return 0;
    const Array& each = *values.each;
    if (each.size() != rows_)
      throw InvalidArgument(format("{} is one number or one for each of {} rows, not {}", name,
                                   rows_, each.identify()));
    return keep(prepared(each, type));
  }
  CUdeviceptr add_seeds(const std::optional<Array>& seeds) {
    if (!seeds) return 0;
    if (seeds->type() != ScalarType::uint64 && seeds->type() != ScalarType::int64)
      throw InvalidArgument(
          format("seeds of rows are uint64 or int64, not {}", scalar_name(seeds->type())));
    return add(PerRow<std::uint64_t>{.each = seeds}, seeds->type(), "seed");
  }
  CUdeviceptr add_previous(const Array& previous, SamplingSettings& settings) {
    if (previous.ndim() == 0 || previous.size() % rows_ != 0 ||
        (rows_ > 1 && previous.shape()[0] != rows_))
      throw InvalidArgument(format("previous has a row of tokens for each of {} rows, not shape {}",
                                   rows_, shape_to_string(previous.shape())));
    if (!is_signed_integer(previous.type()) && !is_unsigned_integer(previous.type()))
      throw InvalidArgument(
          format("previous holds tokens of an integer type, not {}", scalar_name(previous.type())));
    settings.wide_previous = previous.type() != ScalarType::int32;
    settings.previous_count = static_cast<std::int32_t>(previous.size() / rows_);
    if (settings.previous_count == 0) return 0;
    return keep(prepared(previous, settings.wide_previous ? ScalarType::int64 : ScalarType::int32));
  }
  void use_on(const Stream& on) const {
    for (const Array& each : kept_) each.use_on(on);
  }

 private:
  Array prepared(const Array& array, ScalarType type) const {
    if (array.type() != type) return cast(array, type, stream_);
    return array.is_contiguous() ? array : copy(array, stream_);
  }
  CUdeviceptr keep(Array array) {
    kept_.push_back(std::move(array));
    return kept_.back().address();
  }

  std::int64_t rows_;
  const Stream& stream_;
  std::vector<Array> kept_;
};

void require_sampling(const Array& out, const Array& logits) {
  const ScalarType type = logits.type();
  if (type != ScalarType::float16 && type != ScalarType::bfloat16 && type != ScalarType::float32)
    throw InvalidArgument(
        format("logits are float16, bfloat16 or float32, not {}", scalar_name(type)));
  if (logits.ndim() == 0 || logits.shape().back() < 1 || logits.shape().back() > kMostTokens)
    throw InvalidArgument(format("logits have from 1 to {} tokens in their last axis, not shape {}",
                                 kMostTokens, shape_to_string(logits.shape())));
  const bool whole = out.type() == ScalarType::int32 || out.type() == ScalarType::int64;
  if (!whole || out.size() != logits.size() / logits.shape().back() || !out.is_contiguous() ||
      out.read_only() || &out.device() != &logits.device())
    throw InvalidArgument(
        format("out takes a token of each row of {} on the same device: int32 or int64, without "
               "gaps, not {}",
               logits.identify(), out.identify()));
}

std::uint32_t make_grid(std::int64_t rows, std::uint32_t each) {
  const std::int64_t blocks = rows * each;
  if (blocks > std::numeric_limits<std::int32_t>::max())
    throw InvalidArgument(format("{} rows of logits are more than a launch has blocks for", rows));
  return static_cast<std::uint32_t>(blocks);
}

/// Memory that blocks of a row share.
Array sampling_scratch(Device& device, const SamplingPlan& plan, std::int64_t rows,
                       SamplingScratch& scratch, bool seen, const Stream& stream) {
  const std::int64_t groups = rows * plan.groups;
  const std::int64_t histograms = plan.draws > 1 ? rows * std::int64_t{kHistogramBytes} : 0;
  const std::int64_t bits = seen ? groups * (kGroupTokens / 8) : 0;
  const Array memory =
      Array::empty(device, {groups * 12 + histograms + bits + rows * 4}, ScalarType::uint8, stream);
  scratch.masses = memory.address();
  if (histograms != 0) scratch.histograms = scratch.masses + groups * 8;
  scratch.maxima = scratch.masses + groups * 8 + histograms;
  scratch.arrived = scratch.maxima + groups * 4;
  if (seen) scratch.seen = scratch.arrived + rows * 4;
  return memory;
}

void launch_sampling(const Array& out, const Array& rows, const SamplingSettings& settings,
                     const SamplingPlan& plan, const Stream& on, const Stream& stream) {
  Device& device = rows.device();
  const std::int64_t count = out.size();
  const std::uint64_t item = scalar_size(rows.type());
  const auto bytes = static_cast<std::uint64_t>(rows.strides()[0]);
  const std::uint64_t stride = bytes / item;
  const auto tokens = static_cast<std::uint32_t>(rows.shape()[1]);
  const bool packed = (rows.address() | (count > 1 ? bytes : 0)) % (kSamplingPack * item) == 0;
  const bool searched = plan.searches != 0;
  // First, because this compile makes the search's kernel, too.
  const Kernel& drawing = sampling_kernel(rows.type(), packed, searched).on(device);
  SamplingScratch scratch{};
  Array memory;
  LaunchConfig config;
  config.stream = on;
  config.programmatic_dependent = overlaps_launches(device, count);
  if (searched) {
    memory = sampling_scratch(device, plan, count, scratch, settings.previous != 0, stream);
    config.grid = {make_grid(count, plan.searches)};
    config.block = {kSearchThreads};
    launch(search_kernel(rows.type(), packed).on(device), config, rows.address(), stride, tokens,
           settings, scratch, plan.searches, plan.searched);
  }
  config.grid = {make_grid(count, plan.draws)};
  config.block = {kSamplingThreads};
  launch(drawing, config, out.address(), rows.address(), stride, tokens, settings, scratch,
         plan.draws);
  if (searched) memory.use_on(on);
}

}  // namespace

void sample_tokens(const Array& out, const Array& logits, const SamplingOptions& options,
                   const Stream& stream) {
  require_sampling(out, logits);
  Device& device = logits.device();
  SamplingSettings settings{};
  settings.counter = options.state.counter_on(device);
  const std::int64_t count = out.size();
  if (count == 0) return;
  const Stream on = stream ? stream : Stream::legacy(device);
  const Array rows = sampling_rows(logits, stream);
  const auto tokens = static_cast<std::uint32_t>(rows.shape()[1]);
  SamplingOperands operands(count, stream);
  settings.temperature = options.temperature.value;
  settings.top_p = options.top_p.value;
  settings.min_p = options.min_p.value;
  settings.penalty = options.repetition_penalty.value;
  settings.top_k = options.top_k.value;
  settings.temperatures = operands.add(options.temperature, ScalarType::float32, "temperature");
  settings.top_ps = operands.add(options.top_p, ScalarType::float32, "top_p");
  settings.min_ps = operands.add(options.min_p, ScalarType::float32, "min_p");
  settings.penalties =
      operands.add(options.repetition_penalty, ScalarType::float32, "repetition_penalty");
  settings.top_ks = operands.add(options.top_k, ScalarType::int32, "top_k");
  if (options.previous) settings.previous = operands.add_previous(*options.previous, settings);
  settings.seed = options.state.seed;
  settings.step = options.state.offset;
  settings.seeds = operands.add_seeds(options.seeds);
  settings.steps = operands.add(PerRow<int>{.each = options.steps}, ScalarType::int32, "step");
  settings.wide_out = out.type() == ScalarType::int64;

  launch_sampling(out, rows, settings, sampling_plan(device, planned_rows(count), tokens, options),
                  on, stream);
  if (options.state.counter) advance_counter(*options.state.counter, 1, stream);
  rows.use_on(on);
  out.use_on(on);
  operands.use_on(on);
  options.state.use_on(on);
}

}  // namespace kernwright::kernels
