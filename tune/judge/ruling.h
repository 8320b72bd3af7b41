// A decision that ends a judgement early.
#pragma once

#include "tune/judge/task.h"
#include "tune/judge/verdict.h"

#include <optional>
#include <string>

namespace kernwright {

/// Thrown within a judgement, and caught where the verdict is made. Never leaves the library.
struct Ruling {
  VerdictStatus status;
  std::string reason;
  std::optional<LaunchShape> refused{};  ///< the launch refused by the device
};

}  // namespace kernwright
