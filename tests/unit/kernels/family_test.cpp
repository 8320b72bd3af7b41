// Register counts of the library's kernels on the simulated device: made when they are needed.
#include "kernels_src/family.h"

#include "base/errors.h"
#include "jit/cache/code_cache.h"
#include "unit/base/environment_guard.h"
#include "unit/kernels/kernels_fixture.h"

#include <doctest/doctest.h>

#include <string>
#include <thread>
#include <vector>

using namespace kernwright;
using namespace kernwright::test;
using kernels::Family;

namespace {

/// `many` keeps 100 values of a thread at once; `bounded` has as many for 1024 threads.
constexpr const char* kTexts = R"(
template <int N> __device__ void reverse(volatile float* x) {
  float values[N];
  for (int i = 0; i < N; ++i) values[i] = x[i];
  for (int i = 0; i < N; ++i) x[N - 1 - i] = values[i];
}
template <int N> __global__ void many(float* x) { reverse<N>(x); }
template <int N> __global__ void __launch_bounds__(1024) bounded(float* x) { reverse<N>(x); }
)";

std::uint64_t compiles() { return CodeCache::process().stats().compiles; }

const Kernel& instance(const Family& family, std::uint64_t key, const char* name) {
  return family.instance(key, [&] { return std::string(name); }).on(device());
}

void launch_block(const Kernel& kernel, std::uint32_t threads, const Array& x) {
  kernels::launch(kernel, {.block = {threads, 1, 1}, .stream = Stream::create(device())},
                  x.address());
}

}  // namespace

TEST_CASE("family: registers are counted when a launch or a question needs them") {
  if (!device().is_simulated()) return;
  const EnvironmentGuard mode("KERNWRIGHT_CACHE", "memory");
  const Family eager("whole.cu", kTexts, ProgramScope::named);
  const Kernel& many = instance(eager, 0, "many<100>");
  const Kernel& bounded = instance(eager, 1, "bounded<100>");
  REQUIRE(many.attributes().registers > 100);
  REQUIRE(bounded.attributes().registers <= 64);
  REQUIRE(bounded.attributes().local_bytes > 0);
  const std::vector<float> zeros(100);
  const Array x = Array::from_host(device(), zeros.data(), {100}, ScalarType::float32);

  const Family lazy("whole.cu", kTexts);
  const Kernel& late = instance(lazy, 0, "many<100>");
  const Kernel& late_bounded = instance(lazy, 1, "bounded<100>");
  const std::uint64_t before = compiles();
  launch_block(late, 256, x);
  launch_block(late_bounded, 1024, x);
  CHECK(compiles() == before);

  // The launch is refused with the words of a kernel whose registers were there from the start.
  const auto refusal = [&](const Kernel& kernel) {
    std::string said;
    try {
      launch_block(kernel, 1024, x);
    } catch (const LaunchConfigError& error) {
      said = error.what();
    }
    return said;
  };
  CHECK(!refusal(many).empty());
  CHECK(refusal(late) == refusal(many));
  launch_block(late, static_cast<std::uint32_t>(many.attributes().max_threads_per_block), x);
  CHECK(late.attributes().registers == many.attributes().registers);
  CHECK(late.attributes().max_threads_per_block == many.attributes().max_threads_per_block);
  CHECK(late.occupancy(128) == many.occupancy(128));
  // The cubin of the same request was in the cache: the other family asked for it.
  CHECK(compiles() == before);
  CHECK(late_bounded.attributes().registers == bounded.attributes().registers);
  CHECK(late_bounded.attributes().local_bytes == bounded.attributes().local_bytes);
}

TEST_CASE("family: threads that ask for the same registers compile once") {
  if (!device().is_simulated()) return;
  const EnvironmentGuard mode("KERNWRIGHT_CACHE", "memory");
  const Family lazy("threads.cu", kTexts);
  const Kernel& kernel = instance(lazy, 0, "many<90>");
  const std::uint64_t before = compiles();
  std::vector<int> blocks(4);
  std::vector<std::thread> threads;
  for (int& one : blocks) threads.emplace_back([&] { one = kernel.occupancy(128); });
  for (std::thread& thread : threads) thread.join();
  CHECK(compiles() == before + 1);
  CHECK(blocks == std::vector<int>(4, kernel.occupancy(128)));
  CHECK(blocks[0] < 16);  // as many as fit by their threads alone
}
