// A backend without a compiler and a device: what a configuration does is written down.
#pragma once

#include "base/errors.h"
#include "base/format.h"
#include "jit/compile/compile_wait.h"
#include "tune/session/session.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace kernwright {

/// What one configuration does.
struct Script {
  double time_ms = 1;
  double compile_s = 0.001;
  double run_s = 0;
  std::string code{};  ///< empty: a code of its own
  std::optional<std::string> wrong{};
  std::optional<std::string> wrong_at_last{};  ///< after the samples
  std::function<void()> on_plan{}, on_compile{}, on_bind{}, on_run{};
};

class ScriptedBackend final : public TrialBackend {
 public:
  explicit ScriptedBackend(std::map<std::uint64_t, Script> scripts)
      : scripts_(std::move(scripts)) {}

  unsigned compiles = 3, devices = 1;
  bool clock = true;
  std::function<double()> noise;  ///< a factor of each sample; for one device lane
  std::function<void(const WaitLimits&)> on_prepare;
  std::atomic<int> prepared{0}, compiled{0}, verified{0}, sampled{0}, compiling{0},
      most_compiling{0};

  unsigned compile_lanes() const override { return compiles; }
  unsigned device_lanes() const override { return devices; }
  bool has_clock() const override { return clock; }

  TrialWorkRef plan(std::uint64_t index) override {
    call(scripts_[index].on_plan);
    auto work = std::make_shared<Work>();
    work->index = index;
    return work;
  }
  CompiledTrial compile(TrialWork& work, const WaitLimits& limits) override {
    const std::uint64_t index = static_cast<Work&>(work).index;
    const Script& script = scripts_.at(index);
    const int now = ++compiling;
    for (int most = most_compiling; most < now && !most_compiling.compare_exchange_weak(most, now);)
      ;
    const struct Leave {
      std::atomic<int>& count;
      ~Leave() { --count; }
    } leave{compiling};
    {
      const std::lock_guard held(mutex_);
      order_.push_back(index);
    }
    pause(script.compile_s, limits);
    call(script.on_compile);
    ++compiled;
    const std::string code = script.code.empty() ? format("code {}", index) : script.code;
    return {code, code, script.compile_s};
  }
  void bind(TrialWork& work) override { call(scripts_.at(static_cast<Work&>(work).index).on_bind); }
  void prepare(unsigned, const WaitLimits& limits) override {
    ++prepared;
    if (on_prepare) on_prepare(limits);
  }
  KernelResources load(unsigned, TrialWork&, const WaitLimits&) override { return {32, 64, 0}; }
  std::optional<std::string> verify(unsigned lane, TrialWork& work, unsigned launches,
                                    const WaitLimits& limits) override {
    if (lane >= devices) throw Error("no such lane");
    Work& own = static_cast<Work&>(work);
    const Script& script = scripts_.at(own.index);
    const bool is_last = launches == kLastLaunches;
    if (is_last) return script.wrong_at_last;
    ++verified;
    check_wait(limits, "a launch");
    pause(script.run_s, limits);
    call(script.on_run);
    return script.wrong;
  }
  TrialSamples sample(unsigned, TrialWork& work, unsigned count, double,
                      const WaitLimits&) override {
    const Script& script = scripts_.at(static_cast<Work&>(work).index);
    sampled += static_cast<int>(count);
    if (!clock) return {{}, script.time_ms, {{"instructions", script.time_ms}}};
    std::vector<double> times(count, script.time_ms);
    if (noise)
      for (double& time : times) time *= noise();
    return {times, {}, {}};
  }

  std::vector<std::uint64_t> order() const {
    const std::lock_guard held(mutex_);
    return order_;
  }

 private:
  struct Work final : TrialWork {
    std::uint64_t index = 0;
  };
  static void call(const std::function<void()>& function) {
    if (function) function();
  }
  static void pause(double seconds, const WaitLimits& limits) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    while (std::chrono::steady_clock::now() < end) {
      check_wait(limits, "a script");
      std::this_thread::sleep_for(std::chrono::microseconds(500));
    }
  }

  std::map<std::uint64_t, Script> scripts_;
  mutable std::mutex mutex_;
  std::vector<std::uint64_t> order_;
};

}  // namespace kernwright
