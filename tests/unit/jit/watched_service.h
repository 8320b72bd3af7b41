// Compiles that a test looks on at, and holds up.
#pragma once

#include "jit/compile/compile_service.h"
#include "jit/compile/compile_wait.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <utility>

namespace kernwright::testing {

/// Then nothing is compiled at the same time.
inline bool one_processor() { return std::thread::hardware_concurrency() < 2; }

/// A number for texts that no cache has.
inline std::string new_number() {
  static std::random_device random;
  return std::to_string(random()) + std::to_string(random());
}

/// Until the limits of this thread end the wait.
[[noreturn]] inline void wait_for_stop() {
  while (true) {
    check_wait(current_wait_limits(), "a task");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

/// Calls `before` with each text, compiles it, and calls `after`.
class WatchedService : public DirectCompileService {
 public:
  using Hook = std::function<void(const std::string& text)>;

  static WatchedService& get() {
    static auto& service = *new WatchedService;
    return service;
  }
  CompileResult compile(const CompileJob& job, const NvrtcFacts& expected) override {
    const std::string& text = job.request.source.text;
    ++compiles;
    if (before) before(text);
    const After end{*this, text};
    return DirectCompileService::compile(job, expected);
  }

  std::atomic<int> compiles = 0;
  Hook before, after;

 private:
  struct After {
    ~After() {
      if (service.after) service.after(text);
    }
    const WatchedService& service;
    const std::string& text;
  };
};

/// All compiles of the process go through the service while it lives.
struct CompileWatch {
  explicit CompileWatch(WatchedService::Hook before = {}, WatchedService::Hook after = {}) {
    service.before = std::move(before);
    service.after = std::move(after);
    service.compiles = 0;
    set_compile_service([]() -> CompileService& { return WatchedService::get(); });
  }
  ~CompileWatch() { set_compile_service(nullptr); }
  CompileWatch(const CompileWatch&) = delete;
  CompileWatch& operator=(const CompileWatch&) = delete;

  WatchedService& service = WatchedService::get();
};

}  // namespace kernwright::testing
