// Workers of judgements, and who has which.
#include "tune/judge/judge.h"

#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/env.h"
#include "base/errors.h"
#include "base/format.h"
#include "tune/judge/referee.h"
#include "worker/device/remote_device.h"

namespace kernwright {
namespace {

constexpr const char* kDevice = "KERNWRIGHT_DEVICE";
constexpr const char* kCapability = "KERNWRIGHT_SIM_CAPABILITY";
constexpr unsigned kMostWorkers = 1024;

std::string assignment(const char* name, const std::string& value) {
  return format("{}={}", name, value);
}

}  // namespace

struct Judge::State {
  explicit State(const JudgeOptions& options)
      : device(options.device.empty() ? env_text(Env::device) : options.device),
        simulated(options.workers) {}

  bool wants_gpu() const { return !device.starts_with("sim"); }

  /// Opens the GPU, if there is one, once; each later call is quick.
  void find_gpu() {
    const std::lock_guard lock(mutex);
    if (is_known) return;
    if (wants_gpu()) {
      RemoteDeviceOptions options;
      if (device != "auto") options.worker.environment = {assignment(kDevice, device)};
      options.keep_spare = true;
      auto opened = std::make_unique<RemoteDevice>(std::move(options));
      const DeviceFacts& facts = opened->facts();
      if (!facts.is_simulated) {
        gpu_facts = facts;
        gpu = std::move(opened);
      }
    }
    is_known = true;
  }

  RemoteDevice& simulated_device(std::size_t index) {
    if (simulated[index]) return *simulated[index];
    RemoteDeviceOptions options;
    options.worker.environment = {assignment(kDevice, "sim")};
    if (gpu && !env_is_set(Env::sim_capability)) {
      const ComputeCapability capability = gpu_facts->capability;
      options.worker.environment.push_back(
          assignment(kCapability, format("{}.{}", capability.major, capability.minor)));
    }
    simulated[index] = std::make_unique<RemoteDevice>(std::move(options));
    return *simulated[index];
  }

  std::size_t take() {
    std::unique_lock lock(mutex);
    for (;;) {
      for (std::size_t i = 0; i < simulated.size(); ++i) {
        if (busy.size() <= i) busy.resize(simulated.size());
        if (!busy[i]) {
          busy[i] = true;
          return i;
        }
      }
      freed.wait(lock);
    }
  }
  void give(std::size_t index) {
    {
      const std::lock_guard lock(mutex);
      busy[index] = false;
    }
    freed.notify_one();
  }

  const std::string device;
  std::mutex mutex;
  std::condition_variable freed;
  std::vector<bool> busy;
  bool is_known = false;
  std::vector<std::unique_ptr<RemoteDevice>> simulated;
  std::unique_ptr<RemoteDevice> gpu;
  std::optional<DeviceFacts> gpu_facts;
  std::mutex gpu_use;
};

Judge::Judge(JudgeOptions options) {
  if (options.workers == 0 || options.workers > kMostWorkers) {
    throw InvalidArgument(
        format("a judge has 1 to {} workers, not {}", kMostWorkers, options.workers));
  }
  state_ = std::make_unique<State>(options);
}

Judge::~Judge() = default;

Verdict Judge::judge(const Submission& submission, const Task& task) {
  task.check();
  if (submission.timeout <= std::chrono::milliseconds{0}) {
    throw InvalidArgument("the timeout of a judgement must be above 0 seconds");
  }
  static_cast<void>(sim::check_set(submission.checks));
  state_->find_gpu();
  const std::size_t index = state_->take();
  struct GiveBack {
    State& state;
    std::size_t index;
    ~GiveBack() { state.give(index); }
  } const give_back{*state_, index};
  const JudgeDevices devices{state_->simulated_device(index), state_->gpu.get(),
                             state_->gpu_facts ? &*state_->gpu_facts : nullptr, state_->gpu_use};
  return Referee(devices, submission, task).judge();
}

unsigned Judge::workers() const noexcept {
  return static_cast<unsigned>(state_->simulated.size());
}

int Judge::losses() const {
  int sum = state_->gpu ? state_->gpu->losses() : 0;
  for (const auto& each : state_->simulated) sum += each ? each->losses() : 0;
  return sum;
}

}  // namespace kernwright
