// Workers of judgements, and who has which.
#include "tune/judge/judge.h"

#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/env.h"
#include "base/errors.h"
#include "base/format.h"
#include "tune/judge/judged_text.h"
#include "tune/judge/packing.h"
#include "tune/judge/referee.h"
#include "tune/judge/ruling.h"
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
        busy(options.workers),
        lost(options.workers),
        simulated(options.workers) {}

  bool wants_gpu() const { return !device.starts_with("sim"); }

  /// Opens the GPU, if there is one, once; each later call is quick.
  void find_gpu() {
    const std::lock_guard lock(mutex);
    if (is_known) return;
    if (wants_gpu()) {
      RemoteDeviceOptions options;
      if (device != "auto") options.worker.environment = {assignment(kDevice, device)};
      const DeviceFacts facts = RemoteDevice(options).facts();
      if (!facts.is_simulated) {
        gpu_facts = facts;
        options.keep_spare = true;
        gpu = std::make_unique<RemoteDevice>(std::move(options));
      }
    }
    is_known = true;
  }

  RemoteDevice& simulated_device(std::size_t index) {
    if (simulated[index]) return *simulated[index];
    RemoteDeviceOptions options;
    options.worker.environment = {assignment(kDevice, "sim")};
    // The nearest of those that it can have.
    if (gpu && gpu_facts->capability.major >= 9 && !env_is_set(Env::sim_capability)) {
      options.worker.environment.push_back(assignment(kCapability, "9.0"));
    }
    simulated[index] = std::make_unique<RemoteDevice>(std::move(options));
    return *simulated[index];
  }

  std::size_t take() {
    std::unique_lock lock(mutex);
    for (;;) {
      for (std::size_t i = 0; i < simulated.size(); ++i) {
        if (!busy[i]) {
          busy[i] = true;
          return i;
        }
      }
      freed.wait_for(lock, kWaitSlice);
      lock.unlock();
      check_wait({}, "a judgement");
      lock.lock();
    }
  }
  void give(std::size_t index) {
    {
      const std::lock_guard lock(mutex);
      lost[index] = simulated[index] ? simulated[index]->losses() : 0;
      busy[index] = false;
    }
    freed.notify_one();
  }

  const std::string device;
  std::mutex mutex;
  std::condition_variable freed;
  std::vector<bool> busy;
  std::vector<int> lost;  ///< processes of each simulated device, as of its last use
  bool is_known = false;
  std::vector<std::unique_ptr<RemoteDevice>> simulated;
  std::unique_ptr<RemoteDevice> gpu;
  std::optional<DeviceFacts> gpu_facts;
  std::mutex gpu_use;
};

namespace {

void check(const Submission& submission, const Task& task) {
  task.check();
  if (submission.timeout <= std::chrono::milliseconds{0}) {
    throw InvalidArgument("the timeout of a judgement must be above 0 seconds");
  }
  static_cast<void>(sim::check_set(submission.checks));
}

}  // namespace

/// A simulated device that nobody else uses.
class Judge::Lane {
 public:
  explicit Lane(State& state) : state_(state), index_(state.take()) {}
  ~Lane() { state_.give(index_); }
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  RemoteDevice& simulated() const { return state_.simulated_device(index_); }

 private:
  State& state_;
  std::size_t index_;
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
  check(submission, task);
  state_->find_gpu();
  const Lane lane(*state_);
  const JudgeDevices devices{lane.simulated(), state_->gpu.get(),
                             state_->gpu_facts ? &*state_->gpu_facts : nullptr, state_->gpu_use};
  return Referee(devices, submission, task).judge();
}

sim::LineProfile Judge::profile(const Submission& submission, const Task& task, int number) {
  check(submission, task);
  state_->find_gpu();
  const Lane lane(*state_);
  const WaitLimits limits = WaitLimits{}.within(submission.timeout);
  Verdict verdict;
  try {
    const JudgedText text = compile_judged(submission.source, task, lane.simulated().facts(limits),
                                           nullptr, verdict, limits);
    const CaseRef drawn = draw_case(task, submission.seed, number);
    check_values(text.signature, drawn->inputs);
    JudgedKernel kernel(lane.simulated(), *text.ptx, text.signature);
    const std::vector<Contents> given(drawn->inputs.size(), Contents::given);
    const CheckOptions memory_alone{.checks = {"memory"}};
    const LaunchOutcome outcome = kernel.run(*drawn, given, submission.seed, memory_alone, limits);
    return outcome.report ? outcome.report->profile : sim::LineProfile{};
  } catch (const Ruling& ruling) {
    throw InvalidArgument(format("nothing to profile: {}", ruling.reason));
  }
}

unsigned Judge::workers() const noexcept { return static_cast<unsigned>(state_->simulated.size()); }

int Judge::losses() const {
  int sum = 0;
  if (state_->gpu) {
    const std::lock_guard alone(state_->gpu_use);
    sum = state_->gpu->losses();
  }
  const std::lock_guard lock(state_->mutex);
  for (const int lost : state_->lost) sum += lost;
  return sum;
}

}  // namespace kernwright
