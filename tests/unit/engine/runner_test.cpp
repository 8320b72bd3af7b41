// The runner's thread on the simulated device: order of events, wake-ups, ends, failures, loss.
#include "engine/runner.h"

#include "base/errors.h"
#include "base/log.h"
#include "core/device_registry.h"
#include "driver/fault_driver.h"
#include "memory/transfer.h"
#include "unit/kernels/kernels_fixture.h"

#include <doctest/doctest.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

using namespace kernwright;
using namespace std::chrono_literals;
using engine::Finish;
using engine::TokenEvent;

namespace {

constexpr std::int32_t kToken = 7;  ///< all that the model says

FaultDriver& faults() {
  static auto* const made = new FaultDriver(sim::driver_api());
  return *made;
}

const DriverApi& faulty_table() { return faults().api(); }

/// A new device over faults(): only one taken for a GPU can be lost.
Device& faulty_device(bool as_gpu) {
  static auto* const kept = new std::vector<std::unique_ptr<DeviceRegistry>>;
  test::device();  // the kernels of all devices are compiled for this one
  DeviceRegistry::Options options;
  options.wanted = as_gpu ? "cuda" : "sim";
  options.sim = as_gpu ? nullptr : &faulty_table;
  options.cuda = as_gpu ? &faulty_table() : nullptr;
  kept->push_back(std::make_unique<DeviceRegistry>(std::move(options)));
  return kept->back()->by_index(0);
}

/// What came of a sequence.
struct Answer {
  std::vector<std::int32_t> tokens;
  Finish finish = Finish::none;
  std::string error;
};

/// A loop whose model gives kToken to each row, and a runner that the test starts.
class RunnerThread {
 public:
  explicit RunnerThread(Device& device)
      : device_(device),
        sampled_(Array::empty(device, {4}, ScalarType::int32)),
        loop(device,
             {.layout = {.max_rows = 2, .capacity = 4096, .page_size = 16},
              .pages = 512,
              .schedule = {.max_tokens = 8},
              .vocabulary = 10},
             [this](const engine::Bucket& bucket) { return record(bucket); }),
        runner(loop) {
    fill(device, sampled_.address(), kToken, 4, 4, loop.stream());
    loop.stream().synchronize();
  }
  ~RunnerThread() {
    faults().disarm();
    runner.close();
    if (thread_.joinable()) thread_.join();
  }
  RunnerThread(const RunnerThread&) = delete;
  RunnerThread& operator=(const RunnerThread&) = delete;

  void start() {
    thread_ = std::thread([this] { cause = runner.run([this] { between(); }); });
  }
  void join() { thread_.join(); }

  std::uint64_t submit(std::int32_t tokens, std::int32_t choices = 1) {
    engine::Request request;
    request.prompt = {1, 2, 3};
    request.max_tokens = tokens;
    request.choices = choices;
    return loop.submit(std::move(request));
  }

  /// Takes events until `done`. False where the last one was taken.
  bool take_until(const std::function<bool()>& done) {
    while (!done()) {
      std::vector<TokenEvent> events;
      if (!runner.take(events, 10s)) return false;
      for (const TokenEvent& event : events) {
        Answer& text = texts[{event.request, event.choice}];
        REQUIRE(text.finish == Finish::none);
        if (event.token >= 0) text.tokens.push_back(event.token);
        text.finish = event.finish;
        text.error = event.error;
      }
    }
    return true;
  }
  const Answer& text(std::uint64_t request, std::int32_t choice = 0) {
    return texts[{request, choice}];
  }
  bool ended(std::uint64_t request) { return text(request).finish != Finish::none; }

 private:
  Device& device_;
  Array sampled_;
  std::thread thread_;

  Graph record(const engine::Bucket& bucket) {
    on_record();
    const Array tokens = sampled_.slice(0, 0, bucket.rows, 1);
    const auto work = [&] {
      loop.step().begin(bucket.rows, bucket.tokens, loop.stream());
      loop.step().end(tokens, bucket.rows, nullptr, nullptr, loop.stream());
    };
    work();  // compiles
    Graph graph(device_);
    graph.capture(loop.stream(), work);
    return graph;
  }

 public:
  engine::Loop loop;
  engine::Runner runner;
  std::function<void()> between = [] {}, on_record = [] {};
  std::string cause = "run() has not ended";
  std::map<std::pair<std::uint64_t, std::int32_t>, Answer> texts;
};

void arm(const std::string& function, CUresult result, bool sticky = false) {
  FaultPlan plan;
  plan.function = function;
  plan.result = result;
  plan.sticky = sticky;
  faults().arm(plan);
}

}  // namespace

TEST_CASE("runner: tokens and ends of requests come to another thread") {
  RunnerThread all(faulty_device(false));
  const std::uint64_t first = all.submit(5), second = all.submit(1, 2);
  all.start();
  const std::uint64_t third = all.submit(40);
  CHECK(all.take_until([&] { return all.ended(third); }));
  CHECK(all.take_until([&] { return all.ended(first) && all.texts.size() == 4; }));
  for (const auto& [key, text] : all.texts) {
    CHECK(text.finish == Finish::length);
    const std::size_t count = key.first == first ? 5 : key.first == second ? 1 : 40;
    CHECK(text.tokens == std::vector<std::int32_t>(count, kToken));
  }
  std::vector<TokenEvent> events;
  CHECK(all.runner.take(events, 1ms));  // nothing more, for now
  CHECK(events.empty());
  all.runner.close();
  CHECK_FALSE(all.runner.take(events, 10s));
  all.join();
  CHECK(all.cause.empty());
}

TEST_CASE("runner: close() ends what runs and what waits as cancelled") {
  RunnerThread all(faulty_device(false));
  std::vector<std::uint64_t> requests;
  for (int i = 0; i < 5; ++i) requests.push_back(all.submit(4000));
  all.start();
  CHECK(all.take_until([&] { return !all.text(requests[0]).tokens.empty(); }));
  all.runner.close();
  all.join();
  CHECK_FALSE(all.take_until([] { return false; }));
  for (const std::uint64_t request : requests) CHECK(all.text(request).finish == Finish::cancelled);
  CHECK(all.text(requests[4]).tokens.empty());  // of two rows it had none
  const engine::LoopStats stats = all.loop.stats();
  CHECK(stats.aborted == 5);
  CHECK(stats.waiting == 0);
  CHECK(stats.used_pages == 0);
}

TEST_CASE("runner: requests of a runner that is closed before it runs are cancelled") {
  RunnerThread all(faulty_device(false));
  const std::uint64_t request = all.submit(3);
  all.runner.close();
  all.start();
  CHECK_FALSE(all.take_until([] { return false; }));
  CHECK(all.text(request).finish == Finish::cancelled);
  CHECK(all.loop.stats().steps == 0);
}

TEST_CASE("runner: a request that is cancelled before a step gets no token") {
  RunnerThread all(faulty_device(false));
  const std::uint64_t kept = all.submit(3), gone = all.submit(3);
  all.loop.inbox().cancel({gone});
  all.loop.inbox().cancel({gone + 9});  // of no request
  all.start();
  CHECK(all.take_until([&] { return all.ended(kept) && all.ended(gone); }));
  CHECK(all.text(kept).tokens.size() == 3);
  CHECK(all.text(gone).finish == Finish::cancelled);
  CHECK(all.text(gone).tokens.empty());
}

TEST_CASE("runner: interrupts call a function between steps, several of them once") {
  RunnerThread all(faulty_device(false));
  std::atomic<int> calls = 0;
  std::chrono::nanoseconds age = 1h;
  all.between = [&] {
    age = all.loop.step_age();
    ++calls;
    calls.notify_all();
  };
  for (int i = 0; i < 3; ++i) all.runner.interrupt();
  all.start();
  calls.wait(0);  // without any work
  CHECK(calls == 1);
  const std::uint64_t request = all.submit(4000);
  CHECK(all.take_until([&] { return !all.text(request).tokens.empty(); }));
  all.runner.interrupt();
  calls.wait(1);
  CHECK(calls == 2);
  CHECK(age == 0ns);
  const std::size_t before = all.text(request).tokens.size();
  CHECK(all.take_until([&] { return all.text(request).tokens.size() > before; }));
}

TEST_CASE("runner: requests of a failed step fail, and later ones run") {
  RunnerThread all(faulty_device(false));
  const std::uint64_t first = all.submit(4000);
  all.start();
  CHECK(all.take_until([&] { return !all.text(first).tokens.empty(); }));
  arm("cuGraphLaunch", CUDA_ERROR_INVALID_VALUE);
  CHECK(all.take_until([&] { return all.ended(first); }));
  CHECK(all.text(first).finish == Finish::failed);
  CHECK(all.text(first).error.find("cuGraphLaunch") != std::string::npos);
  const std::uint64_t second = all.submit(6);
  CHECK(all.take_until([&] { return all.ended(second); }));
  CHECK(all.text(second).tokens == std::vector<std::int32_t>(6, kToken));
  CHECK(all.loop.stats().failed == 1);
  CHECK(all.loop.stats().used_pages == 0);
}

TEST_CASE("runner: requests fail where their step cannot be recorded, and later ones run") {
  RunnerThread all(faulty_device(false));
  all.on_record = [] { throw Error("no such layer"); };
  const std::uint64_t first = all.submit(3);
  all.start();
  CHECK(all.take_until([&] { return all.ended(first); }));
  CHECK(all.text(first).finish == Finish::failed);
  CHECK(all.text(first).error == "no such layer");
  all.on_record = [] {};
  const std::uint64_t second = all.submit(3);
  CHECK(all.take_until([&] { return all.ended(second); }));
  CHECK(all.text(second).finish == Finish::length);
}

TEST_CASE("runner: the loss of the device fails all requests and ends the thread") {
  struct Quiet {
    Quiet() {
      set_log_sink([](LogLevel, std::string_view) {});
    }
    ~Quiet() { set_log_sink({}); }
  };
  const Quiet quiet;  // the stream of a lost device cannot be waited for
  RunnerThread all(faulty_device(true));
  arm("cuMemcpyHtoDAsync", CUDA_ERROR_LAUNCH_FAILED, true);
  const std::uint64_t first = all.submit(3), second = all.submit(3, 2);
  all.start();
  all.join();
  CHECK(all.cause.find("is lost") != std::string::npos);
  CHECK_FALSE(all.take_until([] { return false; }));
  CHECK(all.texts.size() == 3);
  CHECK(all.ended(first));
  CHECK(all.ended(second));
  for (const auto& [key, text] : all.texts) {
    CHECK(text.finish == Finish::failed);
    CHECK(text.error == all.cause);
  }
  CHECK(all.loop.stats().failed == 2);
}
