// Plans attention by plain multiplications.
#include "base/format.h"
#include "kernels_src/attention/attention_call.h"
#include "kernels_src/attention/plain_attention.cu.h"
#include "kernels_src/family.h"

namespace kernwright::kernels {
namespace {

// As in plain_attention.cu.
constexpr std::int64_t kPlainRows = 16;
constexpr std::int64_t kPlainTokens = 32;
constexpr std::uint32_t kPlainThreads = 128;

}  // namespace

void launch_plain_attention(PreparedAttention& made, std::int64_t splits, const Stream& on) {
  static const auto& family = *new Family("plain_attention.cu", text::plain_attention_cu);
  Device& device = made.q.device();
  AttentionCall& call = made.call;
  const std::int64_t blocks =
      call.kv_heads * made.share_rows(kPlainRows, call.heads / call.kv_heads);
  const std::int64_t steps = (std::int64_t{call.keys} + kPlainTokens - 1) / kPlainTokens;
  if (splits == 0) splits = call.q_starts != 0 ? 1 : choose_splits(device, blocks, steps);
  const Array partial = allocate_splits(made, splits, on);
  const auto key = InstanceKey().add(made.dim_class / 32, 4).add(made.value_class / 32, 4);
  const LazyKernel& kernel = family.instance(
      key, [&] { return format("plain_attention<{}, {}>", made.dim_class, made.value_class); });
  const std::int64_t floats = kPlainRows * made.dim_class + kPlainTokens * (made.dim_class + 4) +
                              kPlainTokens * made.value_class;
  const LaunchConfig config{.grid = {static_cast<std::uint32_t>(blocks * call.splits)},
                            .block = {kPlainThreads},
                            .shared_bytes = static_cast<std::uint32_t>(floats * 4),
                            .stream = on};
  KernelsAhead kernels;
  const LazyKernel* const combine = begin_combine(kernels, made);
  launch(kernel.on(device), config, call);
  launch_combine(made, combine, kernels, on);
  partial.use_on(on);
}

}  // namespace kernwright::kernels
