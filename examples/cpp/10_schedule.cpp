// One device shared by tasks: classes of service, reservations, a queue with reasons.
#include "kernwright.h"

#include <cstdio>
#include <string>
#include <vector>

namespace kw = kernwright;
namespace ks = kernwright::schedule;

namespace {

constexpr int kCount = 1 << 16;
constexpr unsigned kBlocks = kCount / 256;

void require(bool is_so, const std::string& what) {
  if (!is_so) throw kw::Error("not as expected: " + what);
}

}  // namespace

int main() try {
  kw::Device& device = kw::initialise();
  const kw::LazyKernel scale_text = kw::kernel(R"(
__global__ void scale(float* x, float a) { x[blockIdx.x * blockDim.x + threadIdx.x] *= a; })");
  const kw::Kernel scale = scale_text.on(device);
  const std::vector<float> ones(kCount, 1.0f);
  const auto x = kw::Array::from_host(device, ones.data(), {kCount}, kw::ScalarType::float32);
  const kw::Stream behind = kw::Stream::create(device);

  // The work of a task gets a stream of its class. `cut` lets others in between parts of a launch.
  ks::Scheduler scheduler(
      device, {.memory = 1 << 20, .cut = [](auto&&... each) { return kw::cut_launch(each...); }});
  const auto work = [&](float a) {
    return ks::make_work([&, a](const kw::Stream& stream) {
      kw::launch(scale, {.grid = {kBlocks}, .block = {256}, .stream = stream}, x, a);
    });
  };
  const ks::TaskPointer low =
      scheduler.submit({.qos = ks::Qos::best_effort, .memory = {{700'000, 700'000}}, .name = "low"},
                       work(2), behind);
  const ks::TaskPointer high =
      scheduler.submit({.memory = {{700'000, 700'000}}, .name = "high", .after = {low}}, work(3));
  scheduler.result(high);  // throws what made the task fail
  std::vector<float> values(kCount);
  x.to_host(values.data());
  require(values.back() == 6, "both tasks ran");

  // What can never fit is refused, and says what would.
  const ks::TaskPointer large = scheduler.submit({.memory = {{1 << 21, 1 << 21}}}, work(5));
  require(large->state() == ks::TaskState::refused, "too large");
  std::printf("%s\n", scheduler.explain(large).c_str());
  for (const ks::StateChange& change : scheduler.history(low)) {
    std::printf("%s: %s\n", ks::state_name(change.state), change.reason.c_str());
  }

  // What this thread does until the end of `step` is one task, too.
  {
    const auto step = scheduler.open({.qos = ks::Qos::burstable, .name = "step"}, behind);
    kw::launch(scale, {.grid = {kBlocks}, .block = {256}, .stream = step->stream()}, x, 0.5f);
  }
  scheduler.drain();
  x.to_host(values.data());
  require(values.front() == 3, "the block of a thread");
  require(scheduler.stats().reserved == ks::Amount{}, "all is given back");
  std::printf("ok\n");
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
