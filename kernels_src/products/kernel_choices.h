// Tables of choices of all kernels: of launches and of products.
#pragma once

#include "kernels_src/launch_choices.h"

#include <memory>
#include <optional>
#include <span>
#include <string_view>

namespace kernwright::kernels {

/// Uses the table of that text from now on, before the library's own. Nothing goes back to the file
/// named by KERNWRIGHT_KERNEL_CHOICES, or "kernel_choices.json" in the folder of the cache. Throws
/// InvalidArgument for any other text, naming the place.
///
/// A table is JSON: {"format": 1, "devices": {"NVIDIA H100": {"softmax.values": {"short/4": 8}}}}.
/// A device is asked for by name, then as "sm_90". "products" is for
/// products/product_choices.h. Unknown entries, and numbers outside the candidates, count for
/// nothing.
void use_launch_table(std::optional<std::string_view> json);

/// The choices of launches and products of a moment, whatever tables are used
/// later. Thread-safe.
class PinnedChoices {
 public:
  /// The choices of this moment, but for `candidates`, see pin_launches().
  explicit PinnedChoices(std::span<const LaunchCandidate> candidates = {});
  ~PinnedChoices();
  PinnedChoices(const PinnedChoices&) = delete;
  PinnedChoices& operator=(const PinnedChoices&) = delete;

  /// The choices of this moment: one object as long as the tables stay.
  static std::shared_ptr<PinnedChoices> now();
  /// From here on this thread chooses by `pinned`, and by the tables in use if that is null.
  /// Returns what was there.
  static std::shared_ptr<PinnedChoices> set(std::shared_ptr<PinnedChoices> pinned) noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kernwright::kernels
