// Compiles for the tests of devices behind workers.
#include "tests/unit/worker/device/device_fixture.h"

#include "driver/nvrtc_loader.h"
#include "tests/unit/worker/compile_fixture.h"
#include "unit/site_packages.h"

namespace worker_test {

using namespace kernwright;

ObjectCode code_for(RemoteDevice& device, const std::string& text) {
  set_site_packages({testing::site_packages()});
  static Worker compiler(test_program());
  CompileRequest request;
  request.source.text = text;
  request.source.name = "test.cu";
  request.options.lineinfo = true;
  DeviceTarget target;
  target.compute_capability = device.facts().capability.number();
  target.is_simulated = device.facts().is_simulated;
  request.target = target_for_device(target, nvrtc().archs, nvrtc().version());
  request.declared = scan_source(text);
  return code_from(compiler, request);
}

}  // namespace worker_test
