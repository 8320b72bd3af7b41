// Workers of judgements, and their users.
#include "tune/judge/judge.h"

#include <atomic>
#include <mutex>
#include <string_view>

#include "base/env.h"
#include "base/errors.h"
#include "base/format.h"
#include "tune/judge/judged_text.h"
#include "tune/judge/judgement.h"
#include "tune/judge/packing.h"
#include "tune/judge/ruling.h"
#include "worker/device/device_pool.h"

namespace kernwright {
namespace {

constexpr unsigned kMostWorkers = 1024;

std::string assignment(Env variable, std::string_view value) {
  return format("{}={}", env_variable(variable).name, value);
}

}  // namespace

struct Judge::State {
  explicit State(const JudgeOptions& options)
      : workers(options.workers),
        device(options.device.empty() ? env_text(Env::device) : options.device) {}

  /// Looks for the GPU and starts the first simulated device, once; each later call is quick.
  void open() {
    const std::lock_guard lock(mutex);
    if (simulated) return;
    if (!device.starts_with("sim")) find_gpu();
    RemoteDeviceOptions options;
    options.worker.environment = {assignment(Env::device, "sim")};
    // The nearest possible capability.
    if (gpu && gpu_facts->capability.major >= 9 && !env_is_set(Env::sim_capability)) {
      options.worker.environment.push_back(assignment(Env::sim_capability, "9.0"));
    }
    simulated = std::make_unique<DevicePool>(workers, std::move(options));
  }

  void find_gpu() {
    RemoteDeviceOptions options;
    if (device != "auto") options.worker.environment = {assignment(Env::device, device)};
    // Each timed launch is the first of its module; it must not load code on its way.
    options.worker.environment.push_back("CUDA_MODULE_LOADING=EAGER");
    const DeviceFacts facts = RemoteDevice(options).facts();
    if (facts.is_simulated) return;
    gpu_facts = facts;
    options.keep_spare = true;
    gpu = std::make_unique<RemoteDevice>(std::move(options));
  }

  RemoteDevice* known_gpu() {
    const std::lock_guard lock(mutex);
    return gpu.get();
  }

  const unsigned workers;
  const std::string device;
  std::mutex mutex;
  std::unique_ptr<DevicePool> simulated;
  std::unique_ptr<RemoteDevice> gpu;
  std::optional<DeviceFacts> gpu_facts;
  std::mutex gpu_use;
  std::atomic<int> losses = 0;  ///< of simulated devices
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

/// A simulated device for one judgement at a time.
class Judge::Lane {
 public:
  explicit Lane(State& state)
      : state_(state), simulated_(state.simulated->lease()), losses_(simulated_->losses()) {
    simulated_->renew_if_large();
  }
  ~Lane() { state_.losses += simulated_->losses() - losses_; }
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  RemoteDevice& simulated() const { return *simulated_; }

 private:
  State& state_;
  DevicePool::Lease simulated_;
  int losses_;  ///< before
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
  state_->open();
  const Lane lane(*state_);
  const JudgeDevices devices{lane.simulated(), state_->gpu.get(),
                             state_->gpu_facts ? &*state_->gpu_facts : nullptr, state_->gpu_use};
  const auto forget_heap = [&] {
    if (task.allow.count("malloc") == 0) return;
    // What a kernel leaves in the device's heap would be there for the next one.
    lane.simulated().renew();
    const std::lock_guard alone(state_->gpu_use);
    if (state_->gpu != nullptr) state_->gpu->renew();
  };
  try {
    Verdict verdict = Judgement(devices, submission, task).judge();
    forget_heap();
    return verdict;
  } catch (...) {
    forget_heap();
    throw;
  }
}

sim::LineProfile Judge::profile(const Submission& submission, const Task& task, int number) {
  check(submission, task);
  state_->open();
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
    const LaunchOutcome outcome =
        kernel.run(*drawn, given, {.seed = submission.seed}, memory_alone, limits);
    return outcome.report ? outcome.report->profile : sim::LineProfile{};
  } catch (const Ruling& ruling) {
    throw InvalidArgument(format("nothing to profile: {}", ruling.reason));
  }
}

unsigned Judge::workers() const noexcept { return state_->workers; }

int Judge::losses() const {
  int sum = state_->losses;
  if (RemoteDevice* const gpu = state_->known_gpu()) {
    const std::lock_guard alone(state_->gpu_use);
    sum += gpu->losses();
  }
  return sum;
}

}  // namespace kernwright
