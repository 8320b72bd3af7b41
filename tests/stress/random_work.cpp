// Arrays with a twin on the host, and the steps that change both.
#include "stress/random_work.h"

#include "array/array.h"
#include "base/format.h"
#include "core/event.h"
#include "core/graph/graph.h"
#include "core/kernel.h"
#include "memory/buffer.h"
#include "memory/memory_resource.h"
#include "memory/pinned_buffer.h"
#include "memory/transfer.h"
#include "unit/core/saxpy.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <random>
#include <stdexcept>
#include <vector>

namespace kernwright::testing {
namespace {

using std::chrono::steady_clock;

/// Small whole numbers, so that sums are exact whatever their order.
struct Twin {
  Array array;
  std::vector<float> expected;
};

class Worker {
 public:
  Worker(Device& device, std::uint64_t seed) : device_(device), random_(seed) {
    for (int i = 0; i < 3; ++i) streams_.push_back(Stream::create(device_));
    kernel_.emplace(Module::load(device_, kSaxpyPtx), saxpy_signature());
    for (int i = 0; i < 4; ++i) make();
  }

  void step() {
    switch (pick(0, 11)) {
      case 0:
        return make();
      case 1:
        return drop();
      case 2:
      case 3:
      case 4:
        return add();
      case 5:
        return check(twins_[index()]);
      case 6:
        return order();
      case 7:
        return scratch();
      case 8:
        return replay();
      case 9:
        return pinned();
      case 10:
        return renew();
      default:
        return tidy();
    }
  }

  void check_all() {
    for (const Twin& twin : twins_) check(twin);
  }

 private:
  std::int64_t pick(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
  }
  std::size_t index() {
    return static_cast<std::size_t>(pick(0, static_cast<std::int64_t>(twins_.size()) - 1));
  }
  const Stream& stream() { return streams_[static_cast<std::size_t>(pick(0, 2))]; }

  void make() {
    if (twins_.size() >= 24) return drop();
    const auto size = static_cast<std::size_t>(pick(0, 9) == 0 ? pick(1, 200000) : pick(1, 3000));
    Twin twin;
    twin.expected.assign(size, static_cast<float>(pick(0, 9)));
    twin.array = Array::from_host(device_, twin.expected.data(), {static_cast<std::int64_t>(size)},
                                  ScalarType::float32);
    twins_.push_back(std::move(twin));
  }

  void drop() {
    if (twins_.size() <= 2) return make();
    std::swap(twins_[index()], twins_.back());
    twins_.pop_back();  // also while work on it is queued
  }

  void launch(Twin& to, const Twin& from, float factor, const Stream& on) {
    int n = static_cast<int>(std::min(to.expected.size(), from.expected.size()));
    CUdeviceptr x = from.array.address();
    CUdeviceptr y = to.array.address();
    void* arguments[] = {&factor, &x, &y, &n};
    const auto blocks = static_cast<std::uint32_t>((n + 127) / 128);
    kernel_->launch({.grid = {blocks}, .block = {128}, .stream = on}, arguments);
    to.array.use_on(on);
    from.array.use_on(on);
  }

  static void apply(Twin& to, const Twin& from, float factor) {
    const std::size_t n = std::min(to.expected.size(), from.expected.size());
    for (std::size_t i = 0; i < n; ++i) {
      to.expected[i] = to.expected[i] + factor * from.expected[i];
      if (to.expected[i] > 1e6F) throw std::logic_error("the model grew out of its range");
    }
  }

  /// Everything of one worker runs in the order of one stream at a time.
  void settle() {
    for (const Stream& each : streams_) each.synchronize();
  }

  void add() {
    Twin& to = twins_[index()];
    const Twin& from = twins_[index()];
    if (&to == &from || *std::max_element(from.expected.begin(), from.expected.end()) > 1000 ||
        *std::max_element(to.expected.begin(), to.expected.end()) > 100000) {
      return renew();
    }
    const Stream& on = stream();
    settle();
    launch(to, from, 2, on);
    apply(to, from, 2);
  }

  void check(const Twin& twin) {
    settle();
    std::vector<float> read(twin.expected.size());
    twin.array.to_host(read.data());
    if (read == twin.expected) return;
    const auto wrong = std::mismatch(read.begin(), read.end(), twin.expected.begin());
    throw std::logic_error(format("element {} of {} is {}, not {}", wrong.first - read.begin(),
                                  read.size(), *wrong.first, *wrong.second));
  }

  void order() {
    Event event(device_, pick(0, 1) == 0);
    event.record(stream());
    stream().wait(event);
    if (pick(0, 3) == 0) event.synchronize();
  }

  void scratch() {
    const auto bytes = static_cast<std::size_t>(pick(1, 1 << 20));
    Buffer buffer(default_resource(device_), bytes, stream());
    fill(device_, buffer.address(), 7, 1, bytes, buffer.stream());
    buffer.use_on(stream());
  }

  void replay() {
    Twin& to = twins_[0];
    const Twin& from = twins_[1];
    if (*std::max_element(from.expected.begin(), from.expected.end()) > 1000 ||
        *std::max_element(to.expected.begin(), to.expected.end()) > 100000) {
      return renew();
    }
    settle();
    const Stream& on = stream();
    Graph graph(device_);
    graph.capture(on, [&] {
      launch(to, from, 1, on);
      launch(to, from, 3, on);
    });
    graph.launch(on);
    on.synchronize();
    apply(to, from, 1);
    apply(to, from, 3);
  }

  void pinned() {
    Twin& twin = twins_[index()];
    settle();
    PinnedBuffer host(device_, twin.array.nbytes());
    const Stream& on = stream();
    copy_to_host(device_, host.data(), twin.array.address(), host.bytes(), on);
    on.synchronize();
    if (std::memcmp(host.data(), twin.expected.data(), host.bytes()) != 0) {
      throw std::logic_error("a copy into page-locked memory is wrong");
    }
  }

  void renew() {
    Twin& twin = twins_[index()];
    settle();
    std::fill(twin.expected.begin(), twin.expected.end(), static_cast<float>(pick(0, 9)));
    twin.array.assign_from_host(twin.expected.data());
  }

  void tidy() {
    switch (pick(0, 30)) {
      case 0:
        default_resource(device_)->trim();
        return;
      case 1:
        streams_[static_cast<std::size_t>(pick(0, 2))] = Stream::create(device_);
        return;
      case 2:
        kernel_.emplace(Module::load(device_, kSaxpyPtx), saxpy_signature());
        return;
      default:
        return;
    }
  }

  Device& device_;
  std::mt19937_64 random_;
  std::vector<Stream> streams_;
  std::optional<Kernel> kernel_;
  std::vector<Twin> twins_;
};

}  // namespace

std::uint64_t work_at_random(Device& device, std::uint64_t seed,
                             steady_clock::time_point deadline) {
  Worker worker(device, seed);
  std::uint64_t steps = 0;
  while (steady_clock::now() < deadline) {
    worker.step();
    ++steps;
  }
  worker.check_all();
  return steps;
}

}  // namespace kernwright::testing
