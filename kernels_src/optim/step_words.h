// The few numbers of a step that stay on the device: factors, counts, rates, the loss scale.
#pragma once

#include "array/array.h"
#include "core/stream.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace kernwright::kernels {

inline constexpr std::size_t kScheduledRates = 32;

enum class DecayShape : std::uint8_t { constant, linear, cosine, root };

/// A learning rate over the steps 1, 2, ...: peak * step / warmup in the first `warmup` steps,
/// level until `hold`, then down to `floor` at `total`, where it stays.
struct RateSchedule {
  double peak = 0, floor = 0;
  std::int64_t warmup = 0, hold = 0, total = 0;
  DecayShape shape = DecayShape::constant;
};

/// What becomes the factor of all gradients: 1 where nothing is given.
struct FactorWords {
  std::optional<Array> norm = std::nullopt;        ///< float32: that of the gradients as they are
  std::optional<Array> loss_scale = std::nullopt;  ///< float32
  std::optional<Array> given = std::nullopt;       ///< float32: one more factor
  std::optional<Array> tokens = std::nullopt;      ///< int64: a divisor
  double limit = 0;                                ///< of the norm, infinity for none
};

struct GradientFactor {
  Array factor;  ///< float32 without axes
  Array norm;    ///< float32 without axes: behind all factors but the limit; 0 without `norm`
  Array skip;  ///< int32 without axes: 1 where a norm with a loss scale is not finite, or tokens 0
};

/// Changes none of the given words. Throws InvalidArgument.
GradientFactor gradient_factor(const FactorWords& words, Device& device, const Stream& stream = {});

/// The words that a step moves on: where `skip` is 0, `steps` (int64) grows by one. Each rate (one
/// float64) becomes that of its schedule for the new count. `tokens` (int64) become 0. The loss
/// scale (float32) shrinks by `backoff` where the step is skipped for its gradients, and grows by
/// `growth` after each `interval` steps, counted in `good` (int64), that were not.
struct AdvanceWords {
  Array steps;
  std::optional<Array> skip = std::nullopt, tokens = std::nullopt;
  std::optional<Array> loss_scale = std::nullopt, good = std::nullopt;
  double growth = 2, backoff = 0.5;
  std::int64_t interval = 2000;
  std::vector<Array> rates = {};
  std::vector<RateSchedule> schedules = {};
};

/// The launch of that step, after checks and its compile: for several launches of which none may
/// happen alone. Throws InvalidArgument.
std::function<void()> prepare_advance(const AdvanceWords& words, const Stream& stream);

/// The launch that adds to a count, one int64, the number of `word` or `number`.
std::function<void()> prepare_count(const Array& count, const std::optional<Array>& word,
                                    std::int64_t number, const Stream& stream);

/// The address of a word, after a check of its type and device; 0 for none. Throws InvalidArgument.
CUdeviceptr word_address(const std::optional<Array>& word, ScalarType type, const char* name,
                         const Device& device);

}  // namespace kernwright::kernels
