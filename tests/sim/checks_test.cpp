// Correct kernels have no findings, whatever is checked, and compute the same under checks.
#include "sim/checks.h"

#include "sim/references.h"
#include "unit/sim/device/device_fixture.h"

using namespace kernwright;
using namespace kernwright::sim;

TEST_CASE("sim checks: no finding in any correct kernel, and the same results") {
  CurrentDevice device;
  int runs = 0;
  for (const KernelCase& kernel_case : load_cases()) {
    for (const std::string& file : ptx_files(kernel_case.source, ".80.ptx")) {
      INFO("case ", kernel_case.name, ", ", file);
      Buffers plain, checked;
      REQUIRE_NOTHROW(plain = run_case(device.api, kernel_case, read_ptx(file)));
      std::vector<Finding> findings;
      {
        const CheckScope scope({true, true, true});
        REQUIRE_NOTHROW(checked = run_case(device.api, kernel_case, read_ptx(file)));
        findings = scope.findings();
      }
      CHECK_MESSAGE(findings.empty(), findings_text(findings));
      for (std::size_t i = 0; i < plain.size(); ++i) {
        if (kernel_case.arguments[i].order_dependent) continue;
        INFO("argument ", i);
        CHECK(plain[i] == checked[i]);
      }
      ++runs;
    }
  }
  CHECK(runs >= 50);
}
