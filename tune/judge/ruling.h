// What decides a judgement before its end.
#pragma once

#include "tune/judge/verdict.h"

#include <string>

namespace kernwright {

/// Thrown within a judgement, and caught where the verdict is made. Never leaves the library.
struct Ruling {
  VerdictStatus status;
  std::string reason;
};

}  // namespace kernwright
