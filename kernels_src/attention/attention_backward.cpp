// Plans the gradients of attention.
#include "kernels_src/attention/attention_backward.h"

#include "base/errors.h"
#include "base/format.h"
#include "kernels_src/attention/attention_backward.cu.h"
#include "kernels_src/attention/gradient_call.h"
#include "kernels_src/attention/hopper_backward.h"
#include "kernels_src/attention/plain_backward.cu.h"
#include "kernels_src/family.h"
#include "kernels_src/operands.h"

#include <algorithm>
#include <utility>

namespace kernwright::kernels {
namespace {

constexpr std::uint32_t kGradientThreads = 128;
constexpr std::int64_t kGradientWarps = 4;
constexpr std::int64_t kGradientRows = 64;
constexpr std::int64_t kPlainGradientRows = 16;
constexpr std::int64_t kPlainGradientColumns = 32;
constexpr std::int64_t kFactBytes = 16;

const Family& gradient_family() {
  static const auto& family = *new Family("attention_backward.cu", text::attention_backward_cu);
  return family;
}

/// The sums of one launch: over changes of scores, or over weights.
enum GradientSums : int { kChangeSums = 1, kWeightSums = 2, kBothSums = 3 };

LaunchConfig gradient_config(std::int64_t blocks, std::int64_t bytes, const Stream& on) {
  return {.grid = {static_cast<std::uint32_t>(blocks)},
          .block = {kGradientThreads},
          .shared_bytes = static_cast<std::uint32_t>(bytes),
          .stream = on};
}

/// Blocks of `each` keys or queries of a launch; sets row_tiles.
std::int64_t gradient_blocks(AttentionCall& call, bool for_keys, std::int64_t each) {
  const std::int64_t rows = for_keys ? call.keys : call.queries;
  call.row_tiles = static_cast<std::int32_t>((rows + each - 1) / each);
  return std::int64_t{call.batches} * (for_keys ? call.kv_heads : call.heads) * call.row_tiles;
}

void launch_gradient(PreparedGradient& made, bool for_keys, GradientSums sums, const Stream& on) {
  PreparedAttention& of = made.forward;
  const bool large = std::max(of.dim_class, of.value_class) > 128;
  const int columns = large ? 32 : 64, stages = large ? 1 : 2;
  const bool packs = of.moves_packs(true) &&
                     access_bits(made.grad, made.call.grad_at, of.call.value_dim) % 16 == 0;
  const auto key = InstanceKey()
                       .type(of.q.type())
                       .add(of.dim_class / 32, 4)
                       .add(of.value_class / 32, 4)
                       .add(for_keys, 1)
                       .add(sums, 2)
                       .add(packs, 1)
                       .add(made.extras, 2);
  const LazyKernel& kernel = gradient_family().instance(key, [&] {
    return format("attention_gradient<{}, {}, {}, {}, {}, {}, {}, {}, {}>",
                  device_type(of.q.type()), of.dim_class, of.value_class, columns, stages, for_keys,
                  static_cast<int>(sums), packs, made.extras);
  });
  const std::int64_t blocks = gradient_blocks(of.call, for_keys, kGradientRows);
  const std::int64_t tiles = kGradientRows + stages * columns;
  const std::int64_t facts = std::max<std::int64_t>(kGradientRows, stages * columns);
  const std::int64_t bytes = 2 * tiles * (of.dim_class + of.value_class) + facts * kFactBytes;
  if (blocks == 0) return;
  launch(kernel.on(of.q.device()), gradient_config(blocks, bytes, on), of.call, made.call);
}

void launch_plain_gradient(PreparedGradient& made, bool for_keys, const Stream& on) {
  static const auto& family = *new Family("plain_backward.cu", text::plain_backward_cu);
  PreparedAttention& of = made.forward;
  const auto key =
      InstanceKey().add(of.dim_class / 32, 4).add(of.value_class / 32, 4).add(for_keys, 1);
  const LazyKernel& kernel = family.instance(key, [&] {
    return format("plain_gradient<{}, {}, {}>", of.dim_class, of.value_class, for_keys);
  });
  const std::int64_t blocks = gradient_blocks(of.call, for_keys, kPlainGradientRows);
  const std::int64_t elements = of.dim_class + of.value_class;
  const std::int64_t floats =
      kPlainGradientRows * elements + kPlainGradientColumns * (elements + 8);
  if (blocks == 0) return;
  launch(kernel.on(of.q.device()), gradient_config(blocks, floats * 4, on), of.call, made.call);
}

/// delta of each row, read by the other launches.
Array launch_gradient_rows(PreparedGradient& made, const Stream& on) {
  PreparedAttention& of = made.forward;
  Array delta = Array::empty(of.q.device(), of.made.lse->shape(), ScalarType::float32, on);
  made.call.delta = delta.address();
  const std::int64_t rows = delta.size();
  if (rows == 0) return delta;
  const auto key = InstanceKey().add(1, 1).add(0, 40).type(of.q.type());
  const LazyKernel& kernel = gradient_family().instance(
      key, [&] { return format("gradient_rows<{}>", device_type(of.q.type())); });
  launch(kernel.on(of.q.device()),
         gradient_config((rows + kGradientWarps - 1) / kGradientWarps, 0, on), of.call, made.call);
  return delta;
}

void require_gradient_results(const PreparedAttention& of, const Array& grad, const Array& out,
                              const Array& lse) {
  Shape shape = of.q.shape();
  shape.back() = of.call.value_dim;
  Shape rows(shape.begin(), shape.end() - 1);
  if (of.call.q_starts != 0) std::swap(rows[0], rows[1]);
  require_one_device(of.q, "query", grad, "grad");
  require_one_device(of.q, "query", out, "out");
  require_one_device(of.q, "query", lse, "lse");
  const bool fits = grad.shape() == shape && out.shape() == shape && grad.type() == of.q.type() &&
                    out.type() == of.q.type() && lse.shape() == rows &&
                    lse.type() == ScalarType::float32;
  if (fits) return;
  throw InvalidArgument(
      format("Incompatible dimensions or dtypes: grad is a {}, out a {}, lse a {}; the first two "
             "are like the result of attention() of a {}, the last is what return_lse gave",
             grad.identify(), out.identify(), lse.identify(), of.q.identify()));
}

Array empty_gradient(const Array& array, const Stream& on) {
  return Array::empty(array.device(), array.shape(), array.type(), on);
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
                                      const AttentionOptions& options, const Stream& stream) {
  const Stream on = stream ? stream : Stream::legacy(query.device());
  PreparedGradient made;
  made.forward = prepare_attention(query, key, value, options, AttentionOperands::arrays, on);
  PreparedAttention& of = made.forward;
  require_gradient_results(of, grad, out, lse);
  const bool packed = options.q_starts.has_value();
  made.grad = with_whole_heads(grad, on);
  set_result(of, with_whole_heads(out, on), contiguous(lse, on), packed);
  made.extras = options.dropout > 0 ? 2 : of.extras ? 1 : 0;
  AttentionGradients gradients{empty_gradient(of.q, on), empty_gradient(of.k, on),
                               empty_gradient(of.v, on)};
  made.call.grad = made.grad.address();
  made.call.dq = gradients.query.address();
  made.call.dk = gradients.key.address();
  made.call.dv = gradients.value.address();
  made.call.grad_at = like_queries(made.grad, packed);
  made.call.dq_at = like_queries(gradients.query, packed);
  made.call.dk_at = like_queries(gradients.key, packed);
  made.call.dv_at = like_queries(gradients.value, packed);
  if (of.call.batches == 0 || of.call.heads == 0) return gradients;
  if (takes_hopper_backward(made, options)) {
    launch_hopper_backward(made, options, on);
    use_gradients_on(made, gradients, on);
    return gradients;
  }
  const Array delta = launch_gradient_rows(made, on);
  if (query.type() == ScalarType::float32) {
    launch_plain_gradient(made, true, on);
    launch_plain_gradient(made, false, on);
  } else {
    if (std::max(of.dim_class, of.value_class) > 128) {  // both sums do not fit the registers
      launch_gradient(made, true, kChangeSums, on);
      launch_gradient(made, true, kWeightSums, on);
    } else {
      launch_gradient(made, true, kBothSums, on);
    }
    launch_gradient(made, false, kChangeSums, on);
  }
  delta.use_on(on);
  use_gradients_on(made, gradients, on);
  return gradients;
}

}  // namespace kernwright::kernels
