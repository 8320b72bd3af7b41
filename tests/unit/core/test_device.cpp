// Choosing the device under test, once per process.
#include "unit/core/test_device.h"

#include "core/runtime.h"
#include "driver/driver_loader.h"
#include "driver/recording_driver.h"
#include "sim/device.h"
#include "unit/core/fake_driver.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <string_view>

namespace kernwright::testing {
namespace {

bool wants_gpu() {
  const char* const wanted = std::getenv("KERNWRIGHT_DEVICE");
  return wanted != nullptr && std::string_view(wanted).starts_with("cuda");
}

/// Leaked on purpose: the devices behind it live as long as the process.
RecordingDriver& recorder() {
  static auto* const instance = [] {
    const DriverApi* const real = wants_gpu() ? load_cuda_driver() : nullptr;
    return new RecordingDriver(real != nullptr ? *real : sim::driver_api());
  }();
  return *instance;
}

const DriverApi& recorded_sim() { return wants_gpu() ? sim::driver_api() : recorder().api(); }

}  // namespace

Device& test_device() {
  static Device& device = []() -> Device& {
    Runtime::register_sim(recorded_sim);
    if (!wants_gpu()) {
      Runtime::override_cuda(&FakeDriver::get().api());
      return Runtime::get().device("sim");
    }
    if (load_cuda_driver() != nullptr) Runtime::override_cuda(&recorder().api());
    return Runtime::get().current_device();
  }();
  return device;
}

Recorded::Recorded() : device(test_device()) {
  device.context();
  before_ = recorder().check();
}

Recorded::~Recorded() {
  const std::vector<std::string> after = recorder().check();
  CHECK(after == before_);
  for (const std::string& line : after) {
    if (after != before_) MESSAGE(line);
  }
}

}  // namespace kernwright::testing
