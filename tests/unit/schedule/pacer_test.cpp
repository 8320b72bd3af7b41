// The window of best effort and shares of the device's time, on a device of the test.
#include "schedule/pacer.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

using namespace kernwright;
using namespace kernwright::schedule;
using namespace std::chrono_literals;

namespace {

/// Hosts that launch one kernel after the other, and a device that runs them in their order.
struct PacedDevice {
  struct Host {
    PacedLaunch launch;
    Time kernel;                 ///< length
    Time ready{0};               ///< when the host asks for its next launch
    Time begin{0}, end = 3600s;  ///< it wants the device between these
    Time busy{0};
    bool waits = false;
  };
  struct Running {
    Pacer::Number number;
    std::size_t host;
    Time begin, end;
  };

  std::size_t add(std::optional<double> share, Time kernel, double limit = 1) {
    const auto tenant = std::make_shared<Tenant>(std::to_string(hosts.size()), share, limit);
    Host host;
    host.launch = {nullptr, tenant, !share, share.has_value(), {&*tenant, 1}};
    host.kernel = kernel;
    hosts.push_back(host);
    return hosts.size() - 1;
  }

  void run(Time until) {
    for (; now < until; now += step) {
      while (!queue.empty() && queue.front().end <= now) finish();
      for (std::size_t i = 0; i < hosts.size(); ++i) ask(i);
    }
  }
  void finish() {
    const Running& done = queue.front();
    Host& host = hosts[done.host];
    host.busy += done.end - done.begin;
    log.push_back({done.number, done.host, done.begin, done.end});
    pacer.done(done.number, done.end - done.begin, now);
    queue.pop_front();
  }
  void ask(std::size_t i) {
    Host& host = hosts[i];
    if (now >= host.end && host.waits) {
      pacer.remove_waiting(host.launch);
      host.waits = false;
    }
    if (now < host.ready || now < host.begin || now >= host.end) return;
    if (!host.waits) pacer.add_waiting(host.launch, now);
    host.waits = true;
    const auto number = pacer.try_enter(host.launch, now);
    if (!number) return;
    pacer.remove_waiting(host.launch);
    host.waits = false;
    host.ready = now + 6us;
    const Time begin = queue.empty() ? now + 3us : std::max(now + 3us, queue.back().end);
    queue.push_back({*number, i, begin, begin + host.kernel});
  }
  double share(std::size_t host, Time from, Time to) const {
    Time sum{0};
    for (const Running& each : log) {
      if (each.host == host)
        sum += std::max(Time(0), std::min(each.end, to) - std::max(each.begin, from));
    }
    return seconds(sum) / seconds(to - from);
  }

  Pacer pacer;
  std::vector<Host> hosts;
  std::deque<Running> queue;
  std::vector<Running> log;
  Time now{0};
  Time step = 1us;
};

}  // namespace

TEST_CASE("pacer: shares hold within two points over a second, five over 10 ms") {
  for (const std::vector<double>& shares :
       std::vector<std::vector<double>>{{0.3, 0.7}, {0.1, 0.9}, {0.2, 0.3, 0.5}}) {
    PacedDevice device;
    for (std::size_t i = 0; i < shares.size(); ++i) {
      device.add(shares[i], i % 2 == 0 ? Time(100us) : Time(70us));
    }
    device.run(1300ms);
    double all = 0;
    for (std::size_t i = 0; i < shares.size(); ++i) {
      CAPTURE(i);
      all += device.share(i, 200ms, 1200ms);
      CHECK(std::abs(device.share(i, 200ms, 1200ms) - shares[i]) < 0.02);
      for (Time from = 200ms; from < 1200ms; from += 10ms) {
        CHECK(std::abs(device.share(i, from, from + 10ms) - shares[i]) < 0.05);
      }
    }
    CHECK(all > 0.97);  // nothing is lost
  }
}

TEST_CASE("pacer: a share that nobody uses is lent, and comes back at once") {
  PacedDevice device;
  const auto a = device.add(0.25, 100us);
  const auto b = device.add(0.75, 100us);
  device.hosts[b].begin = 100ms;
  device.hosts[b].end = 300ms;
  device.run(400ms);
  CHECK(device.share(a, 10ms, 100ms) > 0.9);
  CHECK(std::abs(device.share(b, 101ms, 111ms) - 0.75) < 0.05);
  CHECK(std::abs(device.share(b, 200ms, 300ms) - 0.75) < 0.03);
  CHECK(device.share(a, 301ms, 399ms) > 0.9);
}

TEST_CASE("pacer: a limit is a cap on an idle device") {
  PacedDevice device;
  const auto a = device.add(0.1, 500us, 0.2);
  device.step = 50us;
  device.run(3s);
  CHECK(std::abs(device.share(a, 1s, 3s) - 0.2) < 0.02);
}

TEST_CASE("pacer: best effort on the device stays within the window while urgent tasks come") {
  PacedDevice device;
  const auto low = device.add({}, 10us);
  std::size_t most = 0;
  for (int i = 0; i < 20'000; ++i) {
    device.pacer.note_urgent(device.now);
    device.run(device.now + 1us);
    if (i > 100) most = std::max(most, device.pacer.size());  // once the kernel's time is known
  }
  CHECK(most <= 5);  // 50 us
  CHECK(device.share(low, 1ms, 20ms) > 0.9);
  device.now += 100ms;  // no urgent task for a while
  device.run(device.now + 5ms);
  CHECK(device.pacer.size() > 5);
}

TEST_CASE("pacer: a short kernel is queued shortly before the one in front ends") {
  Pacer pacer;
  const auto tenant = std::make_shared<Tenant>("t", 0.5, 1);
  const PacedLaunch launch{nullptr, tenant, true, false, {tenant.get(), 1}};
  pacer.done(*pacer.try_enter(launch, 0us), 100us, 100us);
  pacer.note_urgent(100us);
  REQUIRE(pacer.try_enter(launch, 100us));
  CHECK_FALSE(pacer.try_enter(launch, 150us));  // 50 us are left
  REQUIRE(pacer.try_enter(launch, 185us));
  CHECK_FALSE(pacer.try_enter(launch, 199us));  // those of the second one count, too
  CHECK(pacer.try_enter(launch, 290us));
}

TEST_CASE("pacer: a kernel longer than the window goes alone") {
  PacedDevice device;
  device.add({}, 1400us);
  device.add({}, 1400us);
  std::size_t most = 0;
  for (int i = 0; i < 10'000; ++i) {
    device.pacer.note_urgent(device.now);
    device.run(device.now + 1us);
    most = std::max(most, device.pacer.size());
  }
  CHECK(most == 1);
}

TEST_CASE("pacer: work longer than the window is cut, unless that costs too much") {
  Pacer pacer;
  const auto tenant = std::make_shared<Tenant>("t", std::nullopt, 1.0);
  const WorkKey whole{&pacer, 100};
  const WorkKey piece{&tenant, 10};
  const auto measure = [&](const WorkKey& work, Time busy) {
    const auto number = pacer.try_enter({nullptr, tenant, true, false, work}, 0s);
    pacer.done(*number, busy, 0s);
  };
  CHECK_FALSE(pacer.find_cut(whole, 1s));  // never measured
  measure(whole, 400us);
  CHECK_FALSE(pacer.find_cut(whole, 1s));  // nobody urgent came: the window is 1 ms
  pacer.note_urgent(1s);
  const auto cut = pacer.find_cut(whole, 1s + 10ms);
  REQUIRE(cut);
  CHECK(cut->whole == 400us);
  CHECK(cut->latency == 50us);
  pacer.note_cut(whole, piece, 10);
  for (int i = 0; i < 20; ++i) measure(piece, i % 2 == 0 ? 900us : 49us);
  CHECK(pacer.find_cut(whole, 1s));  // 490 us of pieces; urgent work was beside the longer ones
  const WorkKey dear{&pacer, 6}, part{&pacer, 60};
  measure(dear, 400us);
  pacer.note_cut(dear, part, 10);
  for (int i = 0; i < 20; ++i) measure(part, 55us);
  CHECK_FALSE(pacer.find_cut(dear, 1s));  // 550 us
  measure(part, 1us);
  CHECK_FALSE(pacer.find_cut(dear, 1s));  // one short piece tells nothing
  const WorkKey hidden{&pacer, 8};        // once it ended with the launch in front of it
  for (const Time busy : {Time(400us), Time(0us), Time(400us)}) measure(hidden, busy);
  CHECK_FALSE(pacer.find_cut(hidden, 1s));
  const WorkKey once{&pacer,
                     9};  // longer than the window in one run: a cutter would leave it whole
  for (const Time busy : {Time(2200us), Time(700us)}) measure(once, busy);
  CHECK_FALSE(pacer.find_cut(once, 3600s));
  measure({&pacer, 7}, 400us);
  pacer.note_cut({&pacer, 7}, {}, 0);
  CHECK_FALSE(pacer.find_cut({&pacer, 7}, 1s));
}

TEST_CASE("pacer: what never ran charges nobody") {
  Pacer pacer;
  const auto tenant = std::make_shared<Tenant>("t", 0.5, 1);
  const PacedLaunch launch{nullptr, tenant, false, true, {tenant.get(), 1}};
  const auto first = pacer.try_enter(launch, 1ms);
  REQUIRE(first);
  CHECK(pacer.done(*first, 100us, 2ms) == nullptr);
  CHECK(pacer.estimate(launch.work) == Time(100us));
  const double before = tenant->progress();
  const auto second = pacer.try_enter(launch, 2ms);
  REQUIRE(second);
  CHECK(tenant->progress() > before);
  pacer.forget(*second, 3ms);
  CHECK(tenant->progress() == doctest::Approx(before));
  CHECK(pacer.is_empty());
  CHECK(pacer.done(*second, 1us, 3ms) == nullptr);
}

TEST_CASE("pacer: a launch that yields is left shortly before its end, or behind an order's") {
  Pacer pacer;
  const auto tenant = std::make_shared<Tenant>("a", std::nullopt, 1.0);
  std::uint32_t order = 0;
  PacedLaunch launch{nullptr, tenant, true, false, {&*tenant, 1}, false, &order, 64};
  const Pacer::Number first = *pacer.try_enter(launch, 0us);
  CHECK_FALSE(pacer.try_leave(first, 900us));  // nobody knows how long it takes
  pacer.done(first, 1000us, 1000us);
  CHECK(pacer.try_leave(first, 1000us));
  const Pacer::Number second = *pacer.try_enter(launch, 1000us);
  CHECK_FALSE(pacer.try_leave(second, 1900us));
  CHECK(pacer.try_leave(second, 1985us));
  pacer.stop_yielding();
  CHECK(order == 0);  // its caller has gone on
  pacer.done(second, 1000us, 2000us);
  const Pacer::Number third = *pacer.try_enter(launch, 2000us);
  pacer.stop_yielding();
  CHECK(order == 1);
  CHECK(pacer.take_orders() == std::vector<CUdeviceptr>{64});
  CHECK(pacer.take_orders().empty());  // once
  CHECK_FALSE(pacer.try_leave(third, 2990us));
  pacer.done(third, 100us, 2990us);
  CHECK(pacer.try_leave(third, 2990us));
  CHECK(pacer.estimate(launch.work) == Time(1000us));  // a part tells no time of the whole
  launch.is_rest = true;
  order = 0;
  pacer.done(*pacer.try_enter(launch, 3000us), 900us, 3900us);
  CHECK(pacer.estimate(launch.work) == Time(1000us));
}

TEST_CASE("pacer: urgent work stops launches of best effort alone") {
  Pacer pacer;
  const auto tenant = std::make_shared<Tenant>("a", 0.5, 1.0);
  std::uint32_t orders[2] = {};
  PacedLaunch launch{nullptr, tenant, true, true, {&*tenant, 1}, false, &orders[0]};
  REQUIRE(pacer.try_enter(launch, 0us));
  launch.is_best_effort = false;  // a more urgent task has lent its class
  launch.told = &orders[1];
  const Pacer::Number lent = *pacer.try_enter(launch, 0us);
  pacer.stop_yielding();
  CHECK(orders[0] == 1);
  CHECK(orders[1] == 0);
  pacer.withdraw(lent);
  pacer.stop(lent);
  CHECK(orders[1] == 0);
}

TEST_CASE("pacer: best effort waits a little where urgent tasks follow one another") {
  Pacer pacer;
  const auto tenant = std::make_shared<Tenant>("a", std::nullopt, 1.0);
  const PacedLaunch launch{nullptr, tenant, true, false, {&*tenant, 1}};
  const auto enters = [&](Time now) {
    const auto number = pacer.try_enter(launch, now);
    if (number) pacer.done(*number, 10us, now);
    return number.has_value();
  };
  const auto urgent = [&](Time begin, Time end) {
    pacer.note_urgent(begin);
    pacer.note_urgent_end(end);
  };
  urgent(1000us, 1500us);
  CHECK(enters(1510us));  // nothing has followed yet
  urgent(1550us, 2000us);
  CHECK_FALSE(enters(2050us));
  CHECK(enters(2101us));
  for (int i = 0; i < 100; ++i) urgent(5000us + i * 5ms, 6000us + i * 5ms);  // far apart
  CHECK(enters(6001us + 99 * 5ms));
  Time now = 1s;
  int entered = 0;
  for (; now < 1s + 100ms; now += 1ms) {  // without an end, 50 us apart
    urgent(now, now + 950us);
    entered += enters(now + 975us) ? 1 : 0;
  }
  CHECK(entered >= 8);  // one in about 10 ms
  CHECK(entered <= 13);
}
