// Quartiles of measured times, and cuts that no single run decides, by a clock of the test.
#include "schedule/work_times.h"

#include "schedule/pacer.h"

#include <doctest/doctest.h>

#include <memory>
#include <optional>

using namespace kernwright;
using namespace kernwright::schedule;
using namespace std::chrono_literals;

namespace {

/// A best-effort kernel that is cut into ten pieces, beside urgent tasks.
struct CutKernel {
  void run(const WorkKey& work, Time busy) {
    pacer.done(*pacer.try_enter({nullptr, tenant, true, false, work}, now), busy, now);
    now += busy;
  }
  bool is_cut() {
    pacer.note_urgent(now);
    const bool is = pacer.find_cut(whole, now).has_value();
    if (is) pacer.note_cut(whole, piece, 10);
    return is;
  }
  /// Launches of the kernel; returns how many of them went whole.
  int launch(int times, Time whole_time, Time piece_time) {
    int wholes = 0;
    for (int i = 0; i < times; ++i) {
      const bool cuts = is_cut();
      if (!cuts) run(whole, whole_time);
      for (int k = 0; cuts && k < 10; ++k) run(piece, piece_time);
      wholes += cuts ? 0 : 1;
    }
    return wholes;
  }

  Pacer pacer;
  const std::shared_ptr<Tenant> tenant = std::make_shared<Tenant>("t", std::nullopt, 1.0);
  const WorkKey whole{this, 100}, piece{this, 10};
  Time now = 1s;
};

}  // namespace

TEST_CASE("work times: the first quartile and the least of the latest sixteen") {
  WorkTimes times;
  CHECK(times.quartile() == Time(0));
  CHECK(times.least() == Time(0));
  for (const Time busy : {Time(300us), Time(100us), Time(900us)}) times.add(busy);
  CHECK(times.quartile() == Time(100us));
  CHECK(times.least() == Time(100us));
  CHECK(times.count() == 3);
  for (int i = 0; i < 16; ++i) times.add(i == 7 ? 9000us : 200us);
  CHECK(times.quartile() == Time(200us));
  CHECK(times.least() == Time(200us));
  CHECK(times.count() == 19);
}

TEST_CASE("work times: one fast run on a cool device does not end the slices of a kernel") {
  CutKernel kernel;
  kernel.run(kernel.whole, 700us);                       // all later ones take 1000 us
  const int wholes = kernel.launch(500, 1000us, 110us);  // 1100 us in pieces
  CHECK(wholes <= static_cast<int>(CutChoice::kWholeRuns));
  CHECK(kernel.is_cut());
}

TEST_CASE("work times: one slow first run does not end them, nor do slow pieces now and then") {
  CutKernel kernel;
  kernel.run(kernel.whole, 9000us);
  CHECK(kernel.launch(20, 1000us, 110us) == 0);
  for (int i = 0; i < 100; ++i) {
    kernel.run(kernel.piece, i % 3 == 0 ? 5000us : 110us);  // urgent work beside them
    CHECK(kernel.launch(1, 1000us, 110us) == 0);
  }
}

TEST_CASE("work times: pieces that do not pay are tried again later") {
  CutKernel kernel;
  kernel.run(kernel.whole, 1000us);
  CHECK(kernel.launch(2, 1000us, 200us) == 0);  // twenty pieces: not sure before
  const Time begin = kernel.now;
  CHECK(kernel.launch(1000, 1000us, 200us) == 1000);
  CHECK_FALSE(kernel.is_cut());
  kernel.now = begin + 2s + 10ms;
  CHECK(kernel.launch(2, 1000us, 200us) == 0);
  CHECK(kernel.launch(1000, 1000us, 200us) == 1000);  // they still do not
  kernel.now = begin + 5s;
  CHECK(kernel.launch(4, 1000us, 105us) == 0);
  CHECK(kernel.launch(1000, 1000us, 105us) == 0);  // now they do
}

TEST_CASE("work times: a last piece that is short does not count as a whole one") {
  CutKernel kernel;
  kernel.run(kernel.whole, 1600us);
  for (int i = 0; i < 20; ++i) {
    REQUIRE(kernel.is_cut());
    kernel.pacer.note_cut(kernel.whole, kernel.piece, 3.1);
    for (int k = 0; k < 3; ++k) kernel.run(kernel.piece, 520us);  // four of these are too many
  }
}

TEST_CASE("work times: what cannot be cut stays whole for good") {
  CutKernel kernel;
  kernel.run(kernel.whole, 1000us);
  REQUIRE(kernel.is_cut());
  kernel.pacer.note_cut(kernel.whole, {}, 0);
  CHECK_FALSE(kernel.is_cut());
  kernel.now += 1h;
  CHECK_FALSE(kernel.is_cut());
}
