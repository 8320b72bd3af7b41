// Chooses the experts of each token in a mixture, and their weights.
#pragma once

#include "array/array.h"
#include "core/stream.h"

#include <cstdint>
#include <optional>

namespace kernwright::kernels {

struct RouteOptions {
  int chosen = 1;                   ///< experts of a token
  bool sigmoid = false;             ///< scores are sigmoids of the logits, else their softmax
  bool renormalize = true;          ///< the weights of a token have the sum 1
  std::optional<Array> bias{};      ///< (experts,): added to scores for the choice alone
  int groups = 1, groups_kept = 1;  ///< of experts next to each other; see route()
  float scale = 1;                  ///< of the weights
};

struct Routes {
  Array weights;  ///< (tokens, chosen), float32
  Array experts;  ///< (tokens, chosen), int32
};

/// The `chosen` experts of the largest scores of each row of `logits`, (tokens, experts) of any
/// real float type, the largest first and of equal ones the lower number; weights are their scores.
/// NaN counts as -infinity. With groups, experts come from the `groups_kept` best alone: a group is
/// as good as its best expert, with a bias as its two best together (DeepSeek-V2 and -V3,
/// arXiv:2405.04434 and 2412.19437). One kernel, up to 1024 experts, 32 chosen and 32 groups.
/// Throws InvalidArgument, ArgumentError; CompileError, OutOfMemory, DriverError.
Routes route(const Array& logits, const RouteOptions& options, const Stream& stream = {});

}  // namespace kernwright::kernels
