// The device of a suite: simulated, or the GPU with KERNWRIGHT_DEVICE=cuda; all calls recorded.
#pragma once

#include "core/device.h"

#include <string>
#include <vector>

namespace kernwright::testing {

/// The device under test. The simulated device and the real driver's table sit behind a
/// RecordingDriver; without a GPU, "cuda:0" and "cuda:1" are those of the fake driver.
Device& test_device();

/// Checks at the end of a test case for objects left over on the device and for wrong calls.
class Recorded {
 public:
  Recorded();
  ~Recorded();
  Recorded(const Recorded&) = delete;
  Recorded& operator=(const Recorded&) = delete;

  Device& device;

 private:
  std::vector<std::string> before_;
};

}  // namespace kernwright::testing
