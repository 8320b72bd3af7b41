// The order of a sample. On the simulated device work waits in its stream, as on a GPU.
#include "tune/measure/sampler.h"

#include "base/errors.h"
#include "unit/tune/measure/measure_fixture.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace kernwright;
using test::AddOne;
using test::device;

namespace {

/// Lets the simulated device run work only when somebody waits for it.
class WorkWaits {
 public:
  WorkWaits() {
    if (device().is_simulated()) sim::set_schedule_seed(1);
  }
  ~WorkWaits() { sim::set_schedule_seed(std::nullopt); }
  WorkWaits(const WorkWaits&) = delete;
  WorkWaits& operator=(const WorkWaits&) = delete;
};

}  // namespace

TEST_CASE("sampler: restore, then one run, with the copies in turn") {
  const WorkWaits waits;
  Sampler sampler(device(), *stream_gate_code(device()));
  AddOne one(512);
  std::string calls;
  TimedWork work = one.work();
  work.copies = 3;
  work.queue = [&, queue = work.queue](const Stream& stream, std::size_t copy) {
    calls += static_cast<char>('0' + copy);
    queue(stream, copy);
  };
  work.restore = [&](const Stream& stream) {
    calls += 'r';
    one.clear(stream);
  };
  for (int i = 0; i < 4; ++i) {
    const Sample sample = sampler.take(work, CachePolicy::rotate, true, {});
    CHECK_FALSE(sample.gave_up);
    CHECK(sample.ms >= 0);
    CHECK(one.runs() == 1);
  }
  CHECK(calls == "r0r1r2r0");
  calls.clear();
  sampler.take_many(work, 3, {});
  CHECK(calls == "r1r2r0");
}

TEST_CASE("sampler: a batch is one graph of many runs") {
  const WorkWaits waits;
  Sampler sampler(device(), *stream_gate_code(device()));
  AddOne one(512);
  const TimedWork work = one.work();
  sampler.set_batch(work, 5);
  CHECK(sampler.batch() == 5);
  CHECK(one.runs() == 0);  // a capture runs nothing
  sampler.take(work, CachePolicy::graph, true, {});
  CHECK(one.runs() == 5);
  sampler.take_many(work, 2, {});
  CHECK(one.runs() == 15);
  sampler.set_batch(work, 0);
  CHECK(sampler.batch() == 1);
  sampler.take(work, CachePolicy::warm, false, {});
  CHECK(one.runs() == 16);
}

TEST_CASE("sampler: a gate that nobody opens in time gives up, and the run is still done") {
  const WorkWaits waits;
  Sampler sampler(device(), *stream_gate_code(device()), std::chrono::milliseconds(50));
  AddOne one(512);
  TimedWork work = one.work();
  work.queue = [queue = work.queue](const Stream& stream, std::size_t copy) {
    queue(stream, copy);
    stream.synchronize();  // behind the gate
  };
  CHECK(sampler.take(work, CachePolicy::warm, true, {}).gave_up);
  CHECK(one.runs() == 1);
  CHECK_FALSE(sampler.take(work, CachePolicy::warm, false, {}).gave_up);
  CHECK_FALSE(sampler.take(one.work(), CachePolicy::warm, true, {}).gave_up);
}

TEST_CASE("sampler: work that throws leaves no closed gate behind") {
  const WorkWaits waits;
  Sampler sampler(device(), *stream_gate_code(device()));
  AddOne one(512);
  TimedWork work = one.work();
  work.queue = [](const Stream&, std::size_t) { throw Error("not today"); };
  CHECK_THROWS_AS(sampler.take(work, CachePolicy::cold, true, {}), Error);
  sampler.stream().synchronize();
  CHECK_FALSE(sampler.take(one.work(), CachePolicy::cold, true, {}).gave_up);
  CHECK(one.runs() == 1);
}

TEST_CASE("sampler: the flush is as large as L2, and overwritten whole") {
  const Stream stream = Stream::create(device());
  CacheFlush flush(device(), stream);
  CHECK(flush.bytes() ==
        static_cast<std::size_t>(device().attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)));
  flush.queue(stream);
  stream.synchronize();
}

TEST_CASE("clock: cycles over time, and nothing where two stamps do not belong together") {
  const ClockStamp begin{.nanoseconds = 1000, .cycles = 5000, .sm = 3};
  ClockStamp end{.nanoseconds = 101'000, .cycles = 155'000, .sm = 3};
  CHECK(*clock_mhz(begin, end, 0) == doctest::Approx(1500));
  CHECK_FALSE(clock_mhz(begin, end, 100'001).has_value());
  CHECK_FALSE(clock_mhz(end, begin, 0).has_value());
  CHECK_FALSE(clock_mhz(begin, begin, 0).has_value());
  end.sm = 4;
  CHECK_FALSE(clock_mhz(begin, end, 0).has_value());
}
