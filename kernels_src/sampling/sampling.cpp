// Lays rows out for the kernel, and values for all rows beside those of each.
#include "kernels_src/sampling/sampling.h"

#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"
#include "kernels_src/cast/cast.h"
#include "kernels_src/copy/copy.h"
#include "kernels_src/family.h"
#include "kernels_src/sampling/sampling.cu.h"

#include <vector>

namespace kernwright::kernels {

namespace {

constexpr std::uint32_t kSamplingThreads = 1024;
constexpr std::int64_t kMostTokens = std::int64_t{1} << 22;
constexpr std::uint64_t kSamplingPack = 4;

/// As the kernel has it.
struct SamplingSettings {
  float temperature, top_p, min_p, penalty;
  CUdeviceptr temperatures, top_ps, min_ps, penalties, top_ks, previous;
  std::uint64_t seed, step;
  CUdeviceptr counter;
  std::int32_t top_k, previous_count;
  bool wide_previous, wide_out;
};

const LazyKernel& sampling_kernel(ScalarType type, bool packed) {
  static const auto& family = *new Family("sampling.cu", text::sampling_cu);
  return family.instance(InstanceKey().type(type).add(packed, 1), [&] {
    return format("sample_rows<{}, {}>", device_type(type), packed ? "true" : "false");
  });
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
  settings.wide_out = out.type() == ScalarType::int64;

  const std::uint64_t item = scalar_size(rows.type());
  const auto stride = static_cast<std::uint64_t>(rows.strides()[0]);
  const auto tokens = static_cast<std::uint32_t>(rows.shape()[1]);
  const bool packed = (rows.address() | (count > 1 ? stride : 0)) % (kSamplingPack * item) == 0;
  LaunchConfig config;
  config.grid = {static_cast<std::uint32_t>(count)};
  config.block = {kSamplingThreads};
  config.shared_bytes = settings.previous != 0 ? (tokens + 31) / 32 * 4 : 0;
  config.stream = on;
  launch(sampling_kernel(rows.type(), packed).on(device), config, out.address(), rows.address(),
         stride / item, tokens, settings);
  if (options.state.counter) advance_counter(*options.state.counter, 1, stream);
  rows.use_on(on);
  out.use_on(on);
  operands.use_on(on);
  options.state.use_on(on);
}

}  // namespace kernwright::kernels
