// Checks of a specification, and the states.
#include "schedule/task.h"

#include "base/format.h"

#include <string_view>
#include <utility>

namespace kernwright::schedule {
namespace {

class FunctionWork final : public Work {
 public:
  explicit FunctionWork(std::function<void(const Stream&)> function)
      : function_(std::move(function)) {}
  void run(const Stream& stream) override { function_(stream); }

 private:
  std::function<void(const Stream&)> function_;
};

/// Takes all but the predecessors: a chain of tasks must not keep all of its links.
TaskSpec take_without_links(TaskSpec& spec) {
  std::vector<TaskPointer> after = std::exchange(spec.after, {});
  TaskSpec plain = std::move(spec);
  spec.after = std::move(after);
  return plain;
}

/// SchedulerCore::find_tenant() gives these names.
bool is_account_without_model(std::string_view name) {
  constexpr std::string_view kTask = "task ";
  for (const Qos qos : kAllClasses) {
    if (name == qos_name(qos)) return true;
  }
  return name.starts_with(kTask) &&
         name.find_first_not_of("0123456789", kTask.size()) == std::string_view::npos;
}

}  // namespace

std::unique_ptr<Work> make_work(std::function<void(const Stream&)> function) {
  if (!function) throw InvalidArgument("a task needs a function to run");
  return std::make_unique<FunctionWork>(std::move(function));
}

void TaskSpec::check() const {
  if (share) {
    const auto [request, limit] = *share;
    // Written so that NaN fails, too.
    if (!(request > 0 && request <= 1) || !(limit > 0 && limit <= 1)) {
      throw InvalidArgument(format(
          "share=({}, {}): a share of the device's time is above 0 and at most 1", request, limit));
    }
    if (limit < request) {
      throw InvalidArgument(
          format("share=({0}, {1}): the limit {1} is below the request {0}", request, limit));
    }
  }
  if (memory) {
    const auto [request, limit] = *memory;
    if (limit < request) {
      throw InvalidArgument(format(
          "memory=({0}, {1}): the limit of {1} bytes is below the request of {0}", request, limit));
    }
    if (limit == 0) throw InvalidArgument("memory=0: a task without memory leaves memory out");
    if (qos == Qos::guaranteed && limit != request) {
      throw InvalidArgument(format(
          "memory=({}, {}): all memory of a guaranteed task is reserved, so both numbers are "
          "equal; with qos=\"burstable\" the limit may be above the request",
          request, limit));
    }
  }
  if (is_account_without_model(model)) {
    throw InvalidArgument(format(
        "model=\"{}\": an account of tasks without a model has this name; choose another one",
        model));
  }
  for (const TaskPointer& task : after) {
    if (task == nullptr) throw InvalidArgument("after=: an empty task");
  }
}

Amount TaskSpec::request() const noexcept {
  return {memory ? memory->request : 0, share ? share_amount(share->request) : 0};
}

const char* state_name(TaskState state) noexcept {
  constexpr const char* kNames[] = {"pending", "queued", "admitted",  "running",
                                    "done",    "failed", "cancelled", "refused"};
  return kNames[static_cast<std::size_t>(state)];
}

Task::Task(std::uint64_t id, TaskSpec spec, std::shared_ptr<Work> work, Time submitted)
    : id_(id),
      spec_(take_without_links(spec)),
      submitted_(submitted),
      lent_(spec_.qos),
      work_(std::move(work)),
      after_(std::move(spec.after)) {}

Task::~Task() = default;

std::exception_ptr cancelled_in_work(const Task& task) noexcept {
  try {
    throw TaskCancelled(format("{} was cancelled while it ran", task.label()));
  } catch (...) {
    return std::current_exception();
  }
}

std::string Task::label() const {
  return spec_.name.empty() ? format("task {}", id_) : format("\"{}\" (task {})", spec_.name, id_);
}

}  // namespace kernwright::schedule
