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

/// Groups of parameters whose learning rates one launch moves on.
inline constexpr std::size_t kScheduledGroups = 100;
/// Words of a group: seven hyperparameters, of which the learning rate is the first, and the six of
/// its schedule.
inline constexpr std::int64_t kGroupWords = 13;

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

/// The words that a step moves on: where `skip` is 0, `steps` (int64) grows by one. In each of
/// `groups` (13 float64) with a schedule the learning rate becomes that of the new count. The words
/// of a schedule are peak, floor, warmup, hold, total and shape: the rate is peak * step / warmup
/// in the first `warmup` steps, level until `hold`, then goes down to `floor` at `total`, where it
/// stays. The shape is 0 without a schedule, 1 constant, 2 a line, 3 half a cosine, 4 a root. A
/// launch in a graph follows what the words are by then. `tokens` (int64) become 0. The loss
/// scale (float32) shrinks by `backoff` where the step is skipped for its gradients, and grows by
/// `growth` after each `interval` steps, counted in `good` (int64), that were not.
struct AdvanceWords {
  Array steps;
  std::optional<Array> skip = std::nullopt, tokens = std::nullopt;
  std::optional<Array> loss_scale = std::nullopt, good = std::nullopt;
  double growth = 2, backoff = 0.5;
  std::int64_t interval = 2000;
  std::vector<Array> groups = {};
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
