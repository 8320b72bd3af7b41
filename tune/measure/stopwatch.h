// Seconds of the host's clock since a moment.
#pragma once

#include "tune/measure/measure_plan.h"

#include <chrono>

namespace kernwright {

class Stopwatch {
 public:
  Seconds elapsed() const { return std::chrono::steady_clock::now() - begin_; }
  void restart() { begin_ = std::chrono::steady_clock::now(); }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace kernwright
