// Seconds since a session began.
#pragma once

#include <chrono>

namespace kernwright {

/// Any thread may look at it.
class SessionClock {
 public:
  double now() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace kernwright
