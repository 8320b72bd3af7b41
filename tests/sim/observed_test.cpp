// Launches that are watched compute what others do, and are counted the same however they run.
#include "sim/checks.h"
#include "sim/device.h"
#include "sim/line_profile.h"
#include "sim/programs/program_interpreter.h"
#include "sim/programs/program_vectors.h"
#include "sim/references.h"
#include "unit/sim/device/device_fixture.h"

using namespace kernwright;
using namespace kernwright::sim;

namespace {

std::vector<Word32> watched(CurrentDevice& device, const RandomProgram& program) {
  const std::string text = program.ptx();
  return run_program(device.api, program, text.c_str());
}

}  // namespace

TEST_CASE("observed: every case of the corpus gives what its reference computes") {
  CurrentDevice device;
  int runs = 0;
  for (const KernelCase& kernel_case : load_cases()) {
    if (kernel_case.reference.empty()) continue;
    const Buffers expected = expected_results(kernel_case);
    for (const std::string& file : ptx_files(kernel_case.source, ".80.ptx")) {
      INFO("case ", kernel_case.name, ", ", file);
      const LineProfileScope scope;
      Buffers got;
      REQUIRE_NOTHROW(got = run_case(device.api, kernel_case, read_ptx(file)));
      for (std::size_t i = 0; i < got.size(); ++i) {
        const CaseArgument& argument = kernel_case.arguments[i];
        if (argument.count == 0 || argument.order_dependent) continue;
        CHECK(difference(argument.type, got[i], expected[i], argument.comparison) == "");
      }
      const LineProfile profile = scope.profile();
      const LineCounts total = profile.total();
      CHECK(profile.launches.size() == 1);
      CHECK(total.instructions > 0);
      CHECK(total.thread_instructions + total.predicated_off <= 32 * total.instructions);
      CHECK(total.divergent_branches <= total.branches);
      CHECK(total.branches <= total.instructions);
      CHECK(total.global_ideal_sectors <= total.global_sectors);
      CHECK(total.global_lines <= total.global_sectors);
      CHECK(total.shared_ideal_wavefronts <= total.shared_wavefronts);
      CHECK(total.atomics <= total.atomic_passes);
      CHECK(total.atomic_passes <= total.atomic_threads);
      ++runs;
    }
  }
  CHECK(runs >= 2 * 25);
}

TEST_CASE("observed: random programs, counted alike with and without checks") {
  CurrentDevice device;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    INFO("seed ", seed);
    const RandomProgram program(seed);
    const auto expected = interpret(program);
    LineCounts plain;
    {
      const LineProfileScope scope;
      CHECK(watched(device, program) == expected);
      plain = scope.profile().total();
    }
    const LineProfileScope scope;
    const CheckScope checks({true, true, true});
    CHECK(watched(device, program) == expected);
    CHECK(scope.profile().total() == plain);
  }
}
