// Whether a flush leaves anything in the L2 cache, lines that were loaded as evict_last included.
#include "tune/measure/cache_flush.h"

#include "tune/measure/sampler.h"
#include "tune/measure/statistics.h"
#include "unit/tune/measure/measure_fixture.h"

#include <doctest/doctest.h>

#include <numeric>
#include <random>
#include <vector>

using namespace kernwright;
using test::device;

namespace {

constexpr const char* kText = R"(
extern "C" __global__ void keep(const unsigned* x, unsigned words, unsigned* sum) {
  unsigned long long policy;
  asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
  unsigned all = 0;
  for (unsigned i = threadIdx.x; i < words; i += blockDim.x) {
    unsigned value;
    asm volatile("ld.global.L2::cache_hint.u32 %0, [%1], %2;"
                 : "=r"(value) : "l"(x + i), "l"(policy));
    all ^= value;
  }
  atomicXor(sum, all);
}

extern "C" __global__ void load(const unsigned* x, unsigned words, unsigned* sum) {
  unsigned all = 0;
  for (unsigned i = threadIdx.x; i < words; i += blockDim.x) all ^= __ldcg(x + i);
  atomicXor(sum, all);
}

extern "C" __global__ void chase(const unsigned* x, unsigned loads, unsigned* found) {
  unsigned at = 0;
  const long long begin = clock64();
  for (unsigned i = 0; i < loads; ++i) at = __ldcg(x + at);
  found[1] = (unsigned)(clock64() - begin);
  found[2] = at;
})";

/// A ring of lines. Each line holds the place of the next one, so loads wait for each other.
class Ring {
 public:
  Ring() {
    std::vector<unsigned> order(kLines - 1);
    std::iota(order.begin(), order.end(), 1u);
    std::shuffle(order.begin(), order.end(), std::mt19937(7));
    std::vector<unsigned> words(kWords);
    unsigned at = 0;
    for (const unsigned next : order) at = words[at] = next * kLineWords;
    words[at] = 0;
    copy_to_device(device(), ring_.address(), words.data(), 4 * words.size());
  }

  /// Cycles of one load, after `before` has loaded everything twice.
  double cycles(LazyKernel& before, CachePolicy policy) {
    const Pointer ring{ring_.address()}, found{found_.address()};
    const TimedWork loads =
        timed_launch(before.on(device()), {.grid = {1}, .block = {1024}}, ring, kWords, found);
    TimedWork work =
        timed_launch(chase.on(device()), {.grid = {1}, .block = {1}}, ring, kLines, found);
    work.restore = [&](const Stream& stream) {
      for (int i = 0; i < 2; ++i) loads.queue(stream, 0);
    };
    std::vector<double> cycles;
    for (int i = 0; i < 10; ++i) {
      sampler_.take(work, policy, false, {});
      std::vector<unsigned> read(3);
      copy_to_host(device(), read.data(), found_.address(), 4 * read.size());
      REQUIRE(read[2] == 0);  // once around
      if (i > 0) cycles.push_back(static_cast<double>(read[1]) / kLines);
    }
    return median(cycles);
  }

  LazyKernel keep{kernel(kText, "keep")}, load{kernel(kText, "load")},
      chase{kernel(kText, "chase")};

 private:
  static constexpr unsigned kLines = 2048, kLineWords = 32, kWords = kLines * kLineWords;
  Buffer ring_{default_resource(device()), std::size_t{4} * kWords, Stream::create(device())};
  Buffer found_{default_resource(device()), 16, Stream::create(device())};
  Sampler sampler_{device(), *stream_gate_code(device())};
};

}  // namespace

TEST_CASE("cache flush: no line is left in L2, whatever it was loaded as") {
  Ring ring;
  const double there = ring.cycles(ring.keep, CachePolicy::warm);
  const double flushed = ring.cycles(ring.load, CachePolicy::cold);
  const double kept = ring.cycles(ring.keep, CachePolicy::cold);
  if (device().is_simulated()) return;  // which has no caches
  MESSAGE("cycles of a load: in L2 ", there, "; flushed ", flushed, "; flushed after evict_last ",
          kept);
  REQUIRE_MESSAGE(there < 0.8 * flushed, "the test would not see a line that is left");
  CHECK(kept > 0.9 * flushed);
}
