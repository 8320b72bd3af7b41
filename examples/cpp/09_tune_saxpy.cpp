// Tunes a kernel: a session tries configurations in a process of its own and names the best.
#include "kernwright.h"

#include <cstdio>
#include <cstring>
#include <vector>

namespace kw = kernwright;

namespace {

constexpr int kCount = 1 << 14;

template <typename T>
kw::TuningArgument value(const T& number) {
  kw::TuningArgument argument;
  argument.value.resize(sizeof number);
  std::memcpy(argument.value.data(), &number, sizeof number);
  return argument;
}

}  // namespace

int main() try {
  kw::Device& device = kw::initialise();
  const kw::Program program(kw::Source{R"(
#ifndef BLOCK  // without a configuration
#define BLOCK 128
#define VEC 1
#endif
__global__ void saxpy(float a, const float* x, float* y, int n) {
    int i = (blockIdx.x * BLOCK + threadIdx.x) * VEC;
    for (int k = 0; k < VEC; k++)
        if (i + k < n) y[i + k] = a * x[i + k];
})",
                                       "saxpy.cu"});
  kw::Space space;
  space.add("BLOCK", {std::int64_t{64}, std::int64_t{128}, std::int64_t{256}});
  space.add("VEC", {std::int64_t{1}, std::int64_t{2}, std::int64_t{4}});
  space.require("BLOCK * VEC <= 512");
  space.set_problem({{"n", std::int64_t{kCount}}});

  std::vector<float> x(kCount, 3.0f);
  kw::KernelBackendOptions options;
  options.plan = kw::LaunchRule(space, program, "saxpy",
                                {.grid = {"-(-n // (BLOCK * VEC))"}, .block = {"BLOCK"}});
  options.buffers = {{std::as_bytes(std::span(x)), false}, {std::as_bytes(std::span(x)), true}};
  options.arguments = [](const kw::ObjectCode&, const kw::KernelSignature&) {
    return std::vector<kw::TuningArgument>{
        value(2.0f), {.buffer = 0}, {.buffer = 1}, value(kCount)};
  };
  options.check = [](std::span<const kw::TuningOutput> outputs) -> std::optional<std::string> {
    std::vector<float> y(kCount);
    std::memcpy(y.data(), outputs[0].bytes.data(), outputs[0].bytes.size());
    for (const float each : y)
      if (each != 6.0f) return "y is wrong";
    return std::nullopt;
  };
  options.devices = {device.label()};
  kw::KernelBackend backend(device, std::move(options));

  kw::Session session(space, backend, {});
  while (const kw::Trial* const trial = session.next()) {
    const auto choices = space.configurations().at(trial->index);
    std::printf("%s: %s, score %g\n", space.describe(choices).c_str(),
                std::string(kw::trial_status_name(trial->status)).c_str(),
                trial->score.value_or(0));
  }
  const kw::SessionResult result = session.finish();
  if (!result.best) throw kw::Error("no configuration was correct");
  const auto best = space.configurations().at(*result.best);
  std::printf("best of %d on %s: %s\n", static_cast<int>(result.evaluations),
              device.identify().c_str(), space.describe(best).c_str());
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
