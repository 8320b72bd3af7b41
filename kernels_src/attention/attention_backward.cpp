// Plans the gradients of attention.
#include "kernels_src/attention/attention_backward.h"

#include "base/errors.h"
#include "base/format.h"
#include "base/math.h"
#include "jit/kernels_ahead.h"
#include "kernels_src/attention/attention_backward.cu.h"
#include "kernels_src/attention/gradient_call.h"
#include "kernels_src/attention/hopper_backward.h"
#include "kernels_src/attention/plain_backward.cu.h"
#include "kernels_src/family.h"
#include "kernels_src/operands.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

namespace kernwright::kernels {
namespace {

constexpr std::uint32_t kGradientThreads = 128;
constexpr std::int64_t kGradientWarps = 4;
constexpr std::int64_t kGradientRows = 64;
constexpr std::int64_t kPlainGradientRows = 16;
constexpr std::int64_t kPlainGradientColumns = 32;
constexpr std::int64_t kFactBytes = 20;

const Family& gradient_family() {
  static const auto& family = *new Family("attention_backward.cu", text::attention_backward_cu);
  return family;
}

/// The accumulators of one launch: gradients by changes of scores, by weights, or both.
enum GradientAccumulators : int {
  kChangeAccumulators = 1,
  kWeightAccumulators = 2,
  kBothAccumulators = 3
};

LaunchConfig gradient_config(std::int64_t blocks, std::int64_t bytes, const Stream& on) {
  return {.grid = {static_cast<std::uint32_t>(blocks)},
          .block = {kGradientThreads},
          .shared_bytes = static_cast<std::uint32_t>(bytes),
          .stream = on};
}

/// One launch: it adds over queries for each key, or over keys for each query.
struct GradientStep {
  const LazyKernel* kernel;
  std::int64_t row_tiles, blocks, shared_bytes;
};

/// With `each` keys or queries of a block.
GradientStep gradient_step(const AttentionCall& call, bool for_keys, std::int64_t each) {
  const std::int64_t tiles = ((for_keys ? call.keys : call.queries) + each - 1) / each;
  const std::int64_t heads = for_keys ? call.kv_heads : call.heads;
  return {nullptr, tiles, std::int64_t{call.batches} * heads * tiles, 0};
}

GradientStep tiled_step(const PreparedGradient& made, bool for_keys,
                        GradientAccumulators accumulators) {
  const PreparedAttention& forward = made.forward;
  const bool large = std::max(forward.dim_class, forward.value_class) > 128;
  const int columns = large ? 32 : 64, stages = large ? 1 : 2;
  const bool packs = forward.moves_packs(true) &&
                     access_bits(made.grad, made.call.grad_at, forward.call.value_dim) % 16 == 0;
  const auto key = InstanceKey()
                       .type(forward.q.type())
                       .add(forward.dim_class / 32, 4)
                       .add(forward.value_class / 32, 4)
                       .add(for_keys, 1)
                       .add(accumulators, 2)
                       .add(packs, 1)
                       .add(made.extras, 2);
  GradientStep step = gradient_step(forward.call, for_keys, kGradientRows);
  step.kernel = &gradient_family().instance(key, [&] {
    return format("attention_gradient<{}, {}, {}, {}, {}, {}, {}, {}, {}>",
                  device_type(forward.q.type()), forward.dim_class, forward.value_class, columns,
                  stages, for_keys, static_cast<int>(accumulators), packs, made.extras);
  });
  const std::int64_t tiles = kGradientRows + stages * columns;
  const std::int64_t facts = std::max<std::int64_t>(kGradientRows, stages * columns);
  step.shared_bytes = 2 * tiles * (forward.dim_class + forward.value_class) + facts * kFactBytes;
  return step;
}

GradientStep plain_step(const PreparedGradient& made, bool for_keys) {
  static const auto& family = *new Family("plain_backward.cu", text::plain_backward_cu);
  const PreparedAttention& forward = made.forward;
  const auto key = InstanceKey()
                       .add(forward.dim_class / 32, 4)
                       .add(forward.value_class / 32, 4)
                       .add(for_keys, 1);
  GradientStep step = gradient_step(forward.call, for_keys, kPlainGradientRows);
  step.kernel = &family.instance(key, [&] {
    return format("plain_gradient<{}, {}, {}>", forward.dim_class, forward.value_class, for_keys);
  });
  const std::int64_t elements = forward.dim_class + forward.value_class;
  step.shared_bytes = 4 * (kPlainGradientRows * elements + kPlainGradientColumns * (elements + 8));
  return step;
}

/// delta of each row, read by the other launches.
Array launch_gradient_rows(PreparedGradient& made, const Stream& on) {
  PreparedAttention& forward = made.forward;
  Array delta =
      Array::empty(forward.q.device(), forward.made.lse->shape(), ScalarType::float32, on);
  made.call.delta = delta.address();
  const std::int64_t rows = delta.size();
  if (rows == 0) return delta;
  const auto key = InstanceKey().add(1, 1).add(0, 40).type(forward.q.type());
  const LazyKernel& kernel = gradient_family().instance(
      key, [&] { return format("gradient_rows<{}>", device_type(forward.q.type())); });
  launch(kernel.on(forward.q.device()), gradient_config(ceil_div(rows, kGradientWarps), 0, on),
         forward.call, made.call);
  return delta;
}

/// Makes the logarithms of rows relative to bases, where masks of numbers may carry them
/// far from 0.
void rebase_rows(PreparedGradient& made, const Stream& on) {
  PreparedAttention& forward = made.forward;
  const Array& lse = *forward.made.lse;
  constexpr std::int32_t kBoolMask = 1;  // of attention.cuh
  if (forward.call.mask_kind <= kBoolMask || lse.size() == 0) return;
  Device& device = forward.q.device();
  Array relative = Array::empty(device, lse.shape(), ScalarType::float32, on);
  Array bases = Array::empty(device, lse.shape(), ScalarType::float32, on);
  const auto key = InstanceKey().add(1, 1).add(1, 40).type(forward.q.type());
  const LazyKernel& kernel = gradient_family().instance(
      key, [&] { return format("rebase_rows<{}>", device_type(forward.q.type())); });
  launch(kernel.on(device),
         gradient_config((lse.size() + kGradientWarps - 1) / kGradientWarps, 0, on), forward.call,
         relative.address(), bases.address());
  forward.call.lse = relative.address();
  made.call.bases = bases.address();
  forward.others.push_back(std::move(relative));
  forward.others.push_back(std::move(bases));
}

/// The kernels of all launches are compiled at the same time.
void launch_steps(PreparedGradient& made, std::span<const GradientStep> steps, const Stream& on) {
  PreparedAttention& forward = made.forward;
  Device& device = forward.q.device();
  KernelsAhead kernels;
  for (const GradientStep& step : steps) {
    if (step.blocks > 0) kernels.begin(*step.kernel, device);
  }
  const Array delta = launch_gradient_rows(made, on);
  for (const GradientStep& step : steps) {
    if (step.blocks == 0) continue;
    forward.call.row_tiles = static_cast<std::int32_t>(step.row_tiles);
    launch(kernels.on(*step.kernel, device), gradient_config(step.blocks, step.shared_bytes, on),
           forward.call, made.call);
  }
  delta.use_on(on);
}

void launch_gradients(PreparedGradient& made, const Stream& on) {
  const PreparedAttention& forward = made.forward;
  if (forward.q.type() == ScalarType::float32) {
    launch_steps(made, std::array{plain_step(made, true), plain_step(made, false)}, on);
  } else if (std::max(forward.dim_class, forward.value_class) > 128) {
    // Both accumulators do not fit the registers.
    launch_steps(made,
                 std::array{tiled_step(made, true, kChangeAccumulators),
                            tiled_step(made, true, kWeightAccumulators),
                            tiled_step(made, false, kChangeAccumulators)},
                 on);
  } else {
    launch_steps(made,
                 std::array{tiled_step(made, true, kBothAccumulators),
                            tiled_step(made, false, kChangeAccumulators)},
                 on);
  }
}

void require_gradient_results(const PreparedAttention& forward, const Array& grad, const Array& out,
                              const Array& lse) {
  Shape shape = forward.q.shape();
  shape.back() = forward.call.value_dim;
  Shape rows(shape.begin(), shape.end() - 1);
  if (forward.call.q_starts != 0) std::swap(rows[0], rows[1]);
  require_one_device(forward.q, "query", grad, "grad");
  require_one_device(forward.q, "query", out, "out");
  require_one_device(forward.q, "query", lse, "lse");
  const bool fits = grad.shape() == shape && out.shape() == shape &&
                    grad.type() == forward.q.type() && out.type() == forward.q.type() &&
                    lse.shape() == rows && lse.type() == ScalarType::float32;
  if (fits) return;
  throw InvalidArgument(
      format("Incompatible dimensions or dtypes: grad is a {}, out a {}, lse a {}; the first two "
             "are like the result of attention() of a {}, the last is what return_lse gave",
             grad.identify(), out.identify(), lse.identify(), forward.q.identify()));
}

Array empty_gradient(const Array& array, const Stream& on) {
  return Array::empty(array.device(), array.shape(), array.type(), on);
}

/// New arrays; with `in_rows` views of one.
AttentionGradients empty_gradients(const PreparedAttention& forward, bool in_rows,
                                   const Stream& on) {
  if (!in_rows) {
    return {empty_gradient(forward.q, on),
            empty_gradient(forward.k, on),
            empty_gradient(forward.v, on),
            {}};
  }
  const std::int64_t heads = forward.q.shape()[1], kv_heads = forward.k.shape()[1];
  const Shape shape = {forward.q.shape()[0], forward.q.shape()[2], heads + 2 * kv_heads,
                       forward.q.shape()[3]};
  const Array made = Array::empty(forward.q.device(), shape, forward.q.type(), on);
  const Array by_head = made.transpose(std::array{0, 2, 1, 3});
  return {by_head.slice(1, 0, heads, 1), by_head.slice(1, heads, kv_heads, 1),
          by_head.slice(1, heads + kv_heads, kv_heads, 1),
          made.reshape({shape[0], shape[1], shape[2] * shape[3]})};
}

void use_gradients_on(const PreparedGradient& made, const AttentionGradients& gradients,
                      const Stream& on) {
  made.forward.use_on(on);
  for (const Array* each : {&made.grad, &gradients.query, &gradients.key, &gradients.value}) {
    each->use_on(on);
  }
}

}  // namespace

AttentionGradients attention_backward(const Array& grad, const Array& query, const Array& key,
                                      const Array& value, const Array& out, const Array& lse,
                                      const AttentionOptions& options, bool in_rows,
                                      const Stream& stream) {
  const Stream on = stream ? stream : Stream::legacy(query.device());
  PreparedGradient made;
  made.forward = prepare_attention(query, key, value, options, AttentionOperands::arrays, on);
  PreparedAttention& forward = made.forward;
  require_gradient_results(forward, grad, out, lse);
  const bool packed = options.q_starts.has_value();
  made.grad = make_heads_whole(grad, on);
  set_result(forward, make_heads_whole(out, on), contiguous(lse, on), packed);
  made.extras = options.dropout > 0 ? 2 : forward.extras ? 1 : 0;
  AttentionGradients gradients = empty_gradients(forward, in_rows, on);
  made.call.grad = made.grad.address();
  made.call.dq = gradients.query.address();
  made.call.dk = gradients.key.address();
  made.call.dv = gradients.value.address();
  made.call.grad_at = like_queries(made.grad, packed);
  made.call.dq_at = like_queries(gradients.query, packed);
  made.call.dk_at = like_queries(gradients.key, packed);
  made.call.dv_at = like_queries(gradients.value, packed);
  if (forward.call.batches == 0 || forward.call.heads == 0) return gradients;
  rebase_rows(made, on);
  if (takes_hopper_backward(made, options)) {
    launch_hopper_backward(made, options, on);
  } else {
    launch_gradients(made, on);
  }
  use_gradients_on(made, gradients, on);
  return gradients;
}

}  // namespace kernwright::kernels
