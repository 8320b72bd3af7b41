// Random fills in pieces by given times: the number of pieces is exact, the numbers are the same.
#include "core/kernel.h"
#include "core/launch/launch_hook.h"
#include "jit/slicing.h"
#include "kernels_src/random/distributions.h"
#include "unit/kernels/kernels_fixture.h"

#include <doctest/doctest.h>

using namespace kernwright;
using namespace kernwright::test;

namespace {

int multiprocessors() { return device().attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT); }

/// Cuts launches as a scheduler does for which a whole launch took so long.
class TimedPieces final : public LaunchHook {
 public:
  explicit TimedPieces(double launch_us) : launch_us_(launch_us) {}
  void launch(const Kernel& kernel, const LaunchConfig& config, std::span<void* const> arguments,
              const LaunchSite& site) override {
    const PieceRequest request{
        .launch_us = launch_us_, .latency_us = 1000, .multiprocessors = multiprocessors()};
    const auto pieces = cut_launch(kernel, config, arguments, site, request);
    if (pieces == nullptr) {
      ++launches;
      return kernel.launch(config, arguments, site);
    }
    for (; pieces->left() != 0; ++launches) pieces->queue();
  }

  int launches = 0;

 private:
  const double launch_us_;
};

Array filled(std::int64_t count) {
  Array out = Array::empty(device(), {count}, ScalarType::float32);
  kernels::fill_uniform(out, 0, 1, {.seed = 5});
  return out;
}

}  // namespace

TEST_CASE("random fills: pieces are whole rounds of blocks, more than the grid of a whole launch") {
  // A block fills 1024 numbers, so that the fill has seventeen rounds of blocks. The grid of a
  // whole launch has sixteen: its blocks share the work.
  const std::int64_t count = std::int64_t{17} * 1024 * multiprocessors();
  const auto expected = bytes_of(filled(count));
  const auto launches = [&](double launch_us) {
    TimedPieces hook(launch_us);
    const LaunchHookScope scope(&hook);
    const Array out = filled(count);
    CHECK(bytes_of(out) == expected);
    return hook.launches;
  };
  CHECK(launches(700) == 1);    // shorter than a piece may be
  CHECK(launches(6000) == 9);   // eight pieces are wanted: two rounds each
  CHECK(launches(7000) == 17);  // ten are: one round each
  CHECK(launches(1e6) == 17);   // never less than a round
}
