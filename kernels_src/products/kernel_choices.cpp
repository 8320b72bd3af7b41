// Hands a table to launches and to products, and pins both.
#include "kernels_src/products/kernel_choices.h"

#include "kernels_src/products/product_choices.h"

#include <cstdint>
#include <mutex>
#include <utility>

namespace kernwright::kernels {
namespace {

thread_local std::shared_ptr<PinnedChoices> pinned_choices;

}  // namespace

struct PinnedChoices::State {
  explicit State(std::span<const LaunchCandidate> candidates)
      : launches(pin_launches(candidates)) {}
  const std::uint64_t changes = launch_table_changes();
  const std::shared_ptr<PinnedLaunches> launches;
  const std::shared_ptr<PinnedProducts> products = pin_products();
};

PinnedChoices::PinnedChoices(std::span<const LaunchCandidate> candidates)
    : state_(std::make_unique<State>(candidates)) {}
PinnedChoices::~PinnedChoices() = default;

std::shared_ptr<PinnedChoices> PinnedChoices::now() {
  if (pinned_choices) return pinned_choices;
  static std::mutex mutex;
  static auto& latest = *new std::weak_ptr<PinnedChoices>;
  const std::lock_guard lock(mutex);
  std::shared_ptr<PinnedChoices> pinned = latest.lock();
  if (pinned == nullptr || pinned->state_->changes != launch_table_changes()) {
    pinned = std::make_shared<PinnedChoices>();
    latest = pinned;
  }
  return pinned;
}

std::shared_ptr<PinnedChoices> PinnedChoices::set(std::shared_ptr<PinnedChoices> pinned) noexcept {
  set_pinned_launches(pinned != nullptr ? pinned->state_->launches.get() : nullptr);
  set_pinned_products(pinned != nullptr ? pinned->state_->products.get() : nullptr);
  return std::exchange(pinned_choices, std::move(pinned));
}

void use_launch_table(std::optional<std::string_view> json) {
  use_product_table(json);
  use_device_table(json);
}

}  // namespace kernwright::kernels
