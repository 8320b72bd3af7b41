// From the submission of a task to its beginning.
#include "schedule/scheduler_core.h"

#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"
#include "core/graph/capture.h"
#include "core/lifecycle.h"
#include "memory/memory_resource.h"

#include <algorithm>
#include <utility>

namespace kernwright::schedule {
namespace {

constexpr std::size_t kManyTasks = 16;                    ///< not over
constexpr Time kBusy = std::chrono::milliseconds(2);      ///< after many tasks in a row
constexpr std::size_t kClassLanes[kClasses] = {3, 2, 2};  ///< below the 8 queues of a device
constexpr StreamPriority kPriorities[kClasses] = {StreamPriority::high, StreamPriority::medium,
                                                  StreamPriority::low};

SchedulerOptions checked(SchedulerOptions options) {
  if (!(options.share > 0 && options.share <= 1)) {
    throw InvalidArgument(
        format("share={}: a scheduler has a part of the device's time above 0 and at most 1",
               options.share));
  }
  if (options.policy == nullptr) options.policy = make_default_policy();
  if (options.clock == nullptr) options.clock = std::make_shared<SteadyClock>();
  for (std::size_t& most : options.most_running) most = std::max<std::size_t>(most, 1);
  if (!options.background) options.pace.hold = Time(0);  // the order depends on no clock
  // What they have must go with close(); options stay.
  options.make_stream = nullptr;
  options.reserved = nullptr;
  return options;
}

/// Without a number of bytes: from the account of the device. Else the number is set apart there,
/// unless it was reserved before.
Budget make_budget(Device& device, const SchedulerOptions& options, std::shared_ptr<void>& apart) {
  apart = options.reserved;
  const std::uint32_t share = share_amount(options.share);
  if (options.memory == 0) return Budget::from_account(memory_account(device), share);
  if (options.reserved == nullptr) {
    apart = MemoryAccount::set_apart(memory_account(device), options.memory);
  }
  return Budget({options.memory, share});
}

/// The half of the idle accounts that nobody has used for longest, so that names of models that do
/// not come back take no memory for ever. An account stays while arrays of its model live, and
/// while its limit of device time counts what it used.
void drop_accounts(std::map<std::string, std::shared_ptr<Tenant>, std::less<>>& tenants, Time now) {
  std::vector<std::shared_ptr<Tenant>> idle;
  for (const auto& [name, tenant] : tenants) {
    if (tenant->is_idle(now)) idle.push_back(tenant);
  }
  const auto half = idle.begin() + static_cast<std::ptrdiff_t>((idle.size() + 1) / 2);
  std::nth_element(idle.begin(), half, idle.end(),
                   [](const auto& a, const auto& b) { return a->left < b->left; });
  for (auto each = idle.begin(); each != half; ++each) tenants.erase((*each)->name());
}

}  // namespace

SchedulerState::SchedulerState(Device& target, SchedulerOptions given)
    : device(target),
      options(checked(given)),
      policy(options.policy),
      clock(options.clock),
      budget_(make_budget(device, given, apart_)),
      waiting_(*policy),
      pacer_(options.pace) {
  const auto make_stream = [&](Qos qos) {
    const int priority = priority_of(device, kPriorities[ordinal(qos)]);
    return given.make_stream ? given.make_stream(device, priority)
                             : Stream::create(device, priority);
  };
  for (const Qos qos : kAllClasses) {
    for (std::size_t i = 0; i < kClassLanes[ordinal(qos)]; ++i) {
      lanes_.push_back({make_stream(qos), qos, {}, 0});
    }
  }
  if (options.yields) orders_ = std::make_unique<YieldOrders>(make_stream(Qos::guaranteed));
}

void SchedulerCore::note(Task& task, TaskState state, std::string reason, Time now) {
  task.changes_[task.change_count_++] = {state, now, std::move(reason)};
  task.state_.store(state, std::memory_order_release);
}

/// The account of a task: its model's; its own, if it asks for a share; else that of its class. A
/// new one is not in the list yet: the task may be refused.
std::shared_ptr<Tenant> SchedulerCore::find_tenant(const TaskSpec& spec, std::uint64_t id) {
  std::string name = spec.model;
  if (name.empty()) name = spec.share ? format("task {}", id) : qos_name(spec.qos);
  const auto known = tenants_.find(name);
  const std::shared_ptr<Tenant> tenant = known != tenants_.end() ? known->second : nullptr;
  const auto request = spec.share ? std::optional(spec.share->request) : std::nullopt;
  const double limit = spec.share ? spec.share->limit : 1;
  const bool has_memory = spec.memory && !spec.model.empty();
  const Bounds<std::uint64_t> memory = has_memory ? *spec.memory : Bounds<std::uint64_t>();
  const bool is_same_share = !spec.share || (tenant != nullptr && tenant->request() == request &&
                                             tenant->limit() == limit);
  const bool is_same_memory =
      !has_memory || (tenant != nullptr && tenant->memory_request() == memory.request &&
                      tenant->memory_limit() == memory.limit);
  if (tenant != nullptr && is_same_share && is_same_memory) return tenant;
  if (tenant != nullptr && tenant->live != 0) {
    throw InvalidArgument(format(
        "the model \"{}\" has share=({}, {}) and memory=({}, {}) while its tasks run; a task "
        "asks for share=({}, {}) and memory=({}, {}): tasks of one model have one account",
        name, tenant->request().value_or(0), tenant->limit(), tenant->memory_request(),
        tenant->memory_limit(), request.value_or(0), limit, memory.request, memory.limit));
  }
  auto made = std::make_shared<Tenant>(name, request, limit, memory.request, memory.limit);
  made->number = ++made_tenants_;
  if (has_memory) {
    made->memory = std::make_shared<TaskMemory>(default_resource(device), memory.limit,
                                                format("model \"{}\"", name));
  }
  return made;
}

void SchedulerCore::leave_tenant(Task& task) noexcept {
  Tenant& tenant = *task.tenant_;
  const bool was_admitted =
      task.change_count_ >= 3 && task.changes_[2].state == TaskState::admitted;
  if (was_admitted && --tenant.admitted == 0) tenant.held = Reservation();
  if (--tenant.live != 0) return;
  tenant.left = task.changes_[task.change_count_ - 1].time;
  if (task.spec_.model.empty() && task.spec_.share) tenants_.erase(tenant.name());
}

std::optional<Event> SchedulerCore::mark_behind(const Stream& behind, Time now) {
  if (behind && &behind.device() != &device) {
    throw InvalidArgument(format("{} is of another device than the scheduler's, {}",
                                 behind.identify(), device.identify()));
  }
  if (any_capture()) {
    refuse_in_capture(device, behind.handle(), "a submission behind the work",
                      "submit after the capture");
  }
  // In a burst of tasks cuStreamQuery() takes longer than an event's record, so a burst is not
  // asked. Elsewhere the query is worth it: a recorded event delays the beginning of the task.
  if (now >= busy_until_.load(std::memory_order_relaxed) &&
      device.driver().cuStreamQuery(behind.handle()) == CUDA_SUCCESS) {
    return std::nullopt;
  }
  Event event = take_event(false);
  event.record(behind);
  return event;
}

/// What is not reserved yet of the task's own requests and those of its tenant.
Amount SchedulerReport::to_reserve(const Task& task) const noexcept {
  const Tenant& tenant = *task.tenant_;
  Amount amount;
  if (tenant.admitted == 0) {
    amount = {tenant.memory_request(), tenant.request() ? share_amount(*tenant.request()) : 0};
  }
  if (task.spec_.model.empty()) amount.memory += task.spec_.request().memory;
  return amount;
}

Verdict SchedulerReport::judge(const Task& task) const {
  return judge_request(to_reserve(task), budget_);
}

/// Registers the task with those of its predecessors whose work is not queued yet.
void SchedulerCore::link(const TaskPointer& task) {
  for (const TaskPointer& before : task->after_) {
    if (before->is_over() || before->is_issued_) continue;
    before->successors_.push_back(task);
    ++task->predecessors_;
    lend(before, task->qos());
  }
}

/// The class of a waiting task is lent to the one it waits for, and to those in front of that.
void SchedulerCore::lend(const TaskPointer& task, Qos qos) {
  std::vector<TaskPointer> tasks = {task};  // no recursion: chains may be long
  while (!tasks.empty()) {
    const TaskPointer last = std::move(tasks.back());
    tasks.pop_back();
    if (last->is_over() || last->qos() <= qos) continue;
    waiting_.move(last, qos);
    tasks.insert(tasks.end(), last->after_.begin(), last->after_.end());
  }
}

Load SchedulerState::load() const {
  return {.now = clock->now(), .waiting = waiting_.counts(), .running = running_};
}

bool SchedulerState::is_held(Qos qos) const {
  Load now = load();
  for (std::size_t i = 0; i < kClasses; ++i) now.running[i] -= blocked_[i];
  return policy->holds(qos, now);
}

bool SchedulerReport::has_room(Qos qos) const noexcept {
  return running_[ordinal(qos)] < options.most_running[ordinal(qos)];
}

bool SchedulerReport::may_start(const Task& task) const {
  if (!has_room(task.qos())) return false;
  const Tenant& tenant = *task.tenant_;
  return tenant.limit() >= 1 || tenant.meter().second_fraction(clock->now()) < tenant.limit();
}

bool SchedulerCore::may_run_inline(const Task& task) const {
  if (!options.background || task.qos() == Qos::best_effort || task.predecessors_ != 0)
    return false;
  for (std::size_t i = 0; i <= ordinal(task.qos()); ++i) {
    if (waiting_.counts()[i] != 0) return false;
  }
  // A function at the end of another task must not keep its thread for the work of this one.
  if (policy->is_foreign() || !may_start(task) || serves_here()) return false;
  return !is_held(task.qos());
}

/// Takes what the task asks for, and gives it a place on a stream.
bool SchedulerCore::admit(Task& task, Time now) {
  const Amount amount = to_reserve(task);
  const Qos qos = task.qos();
  std::size_t lane = lanes_.size();
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    if (lanes_[i].qos != qos) continue;
    if (lane == lanes_.size() || lanes_[i].load < lanes_[lane].load) lane = i;
  }
  std::vector<TaskPointer>& issued = lanes_[lane].issued;
  if (issued.capacity() <= lanes_[lane].load) issued.reserve(2 * lanes_[lane].load + 8);
  if (amount != Amount{}) {
    // A partition may take from the budget at any moment: all is reserved at once, or nothing.
    std::optional<Reservation> reserved = budget_.reserve(amount);
    if (!reserved) return false;
    const bool is_shared = !task.spec_.model.empty();
    task.reservation_ = reserved->split({is_shared ? 0 : amount.memory, 0});
    if (reserved->is_held()) task.tenant_->held = std::move(*reserved);
  }
  task.lane_ = lane;
  ++lanes_[lane].load;
  ++running_[ordinal(qos)];
  ++task.tenant_->admitted;
  ++issuing_;
  if (qos != Qos::best_effort) {
    pacer_.note_urgent(now);
    pacer_.stop_yielding();
  }
  note(task, TaskState::admitted, {}, now);
  return true;
}

std::optional<std::size_t> SchedulerCore::choose(Lock& lock,
                                                 const std::vector<TaskPointer>& heads) {
  const Load now = load();
  std::vector<Candidate> candidates;
  candidates.reserve(heads.size());
  for (const TaskPointer& task : heads) {
    const Tenant& tenant = *task->tenant_;
    candidates.push_back({.task = task.get(),
                          .tenant = tenant.name(),
                          .qos = task->qos(),
                          .deadline = task->deadline(),
                          .share = tenant.request().value_or(0),
                          .used = tenant.meter().second_fraction(now.now),
                          .progress = tenant.progress()});
  }
  if (!policy->is_foreign()) return policy->choose(candidates, now);
  lock.unlock();
  std::optional<std::size_t> chosen;
  try {
    chosen = policy->choose(candidates, now);
  } catch (...) {
    lock.lock();
    throw;
  }
  lock.lock();
  policy_failure_.clear();
  return chosen;
}

TaskPointer SchedulerCore::next(Lock& lock, std::optional<Qos> qos) {
  std::vector<TaskPointer> heads = waiting_.heads();
  capped_ = false;
  std::erase_if(heads, [&](const TaskPointer& task) {
    if (may_start(*task)) return false;
    capped_ = capped_ || task->tenant_->limit() < 1;
    return true;
  });
  while (!heads.empty() && !is_closed_) {
    const std::optional<std::size_t> chosen = choose(lock, heads);
    if (!chosen) return nullptr;
    const TaskPointer task = heads.at(*chosen);
    heads.erase(heads.begin() + static_cast<std::ptrdiff_t>(*chosen));
    if (task->state() != TaskState::queued || !may_start(*task)) continue;
    const bool is_other = qos && task->qos() != *qos;
    if (is_other && budget_.fits(to_reserve(*task))) {
      // For a thread of its class, unless all of them have work already.
      if (idle_[ordinal(task->qos())] == 0) continue;
      startable_[ordinal(task->qos())].notify_one();
      return nullptr;
    }
    if (!is_other && admit(*task, clock->now())) {
      waiting_.remove(task);
      return task;
    }
    capped_ = capped_ || (!is_other && waits_for_others(*task));
    // Later tasks must not take what this one waits for.
    std::erase_if(heads, [](const TaskPointer& other) {
      return other->spec_.request() != Amount{} || other->tenant_->request();
    });
  }
  return nullptr;
}

void SchedulerCore::line_up(const TaskPointer& task, Time now) {
  std::string reason;
  if (task->predecessors_ != 0) {
    reason = format("waits for the work of {} to be queued",
                    task->predecessors_ == 1 ? "a predecessor"
                                             : format("{} predecessors", task->predecessors_));
  } else {
    waiting_.add(task);
    reason = judge(*task).reason;
    std::size_t others = 0;  // explain() looks at each; that is too long here
    for (std::size_t i = 0; i <= ordinal(task->qos()); ++i) others += waiting_.counts()[i];
    if (others > 1) {
      reason += format("{}{} of its class or one in front of it wait{}", reason.empty() ? "" : "; ",
                       others - 1, others == 2 ? "s" : "");
    }
  }
  note(*task, TaskState::queued, std::move(reason), now);
}

TaskPointer SchedulerCore::submit(TaskSpec spec, std::shared_ptr<Work> work, const Stream& behind) {
  spec.check();
  const ContextGuard guard(device);  // one for all calls below
  for (const TaskPointer& before : spec.after) require_member(*before, "after=");
  Time now = clock->now();  // one reading for all changes until the task begins
  std::optional<Event> ready = mark_behind(behind, now);
  const std::uint64_t id = next_id_.fetch_add(1, std::memory_order_relaxed);
  const auto task = std::make_shared<Task>(id, std::move(spec), std::move(work), now);
  task->core_ = this;
  Over over;
  Lock lock(mutex_);
  if (options.background && !has_watcher_) start_threads();
  // The watching thread looks in seldom, and leaves ends of tasks to a thread that submits many.
  const bool is_short = !has_room(task->qos()) || !budget_.fits(task->spec_.request());
  if (options.background && (is_short || (live_.size() > kManyTasks && !looked_lately()))) {
    lock.unlock();
    reap(is_short);
    lock.lock();
    now = clock->now();
  }
  if (is_closed_) {
    throw InvalidArgument("the scheduler is closed: it takes no more tasks; make another one");
  }
  task->tenant_ = find_tenant(task->spec_, id);
  task->ready_ = std::move(ready);
  note(*task, TaskState::pending, {}, now);
  if (std::string refusal = find_refusal(*task); !refusal.empty()) {
    task->failure_ =
        std::make_exception_ptr(Refused(format("{} was refused: {}", task->label(), refusal)));
    ++classes_[ordinal(task->spec_.qos)].submitted;
    ++classes_[ordinal(task->spec_.qos)].refused;
    note(*task, TaskState::refused, std::move(refusal), now);
    const auto unused = std::move(task->work_);
    lock.unlock();
    return task;
  }
  if (task->tenant_->live == 0) {
    if (tenants_.size() > options.kept + kClasses) drop_accounts(tenants_, now);
    tenants_.insert_or_assign(task->tenant_->name(), task->tenant_);
  }
  live_.emplace(id, task);
  if (options.background && live_.size() > kManyTasks) busy_until_ = now + kBusy;
  ++classes_[ordinal(task->spec_.qos)].submitted;
  if (task->tenant_->live++ == 0) wake_tenant(task->tenant_);
  try {
    if (!enqueue(task, over, now)) {
      lock.unlock();
      over.settle(*this);
      return task;
    }
  } catch (...) {  // no memory, or no thread
    fail(task, std::current_exception(), over);
    lock.unlock();
    over.settle(*this);
    throw;
  }
  lock.unlock();
  run(task);
  return task;
}

/// Puts a new task into its line. True when it was admitted instead: it begins in this thread.
bool SchedulerCore::enqueue(const TaskPointer& task, Over& over, Time now) {
  if (const TaskPointer failed = failed_predecessor(*task)) {
    std::string reason = format("its predecessor {} failed or was cancelled", failed->label());
    note(*task, TaskState::queued, {}, now);
    finish(task, TaskState::failed, std::move(reason), failed->failure_, over);
    return false;
  }
  if (task->work_ == nullptr) {
    note(*task, TaskState::queued, {}, now);
    return false;
  }
  link(task);
  if (may_run_inline(*task)) {
    note(*task, TaskState::queued, {}, now);
    if (admit(*task, now)) return true;
    waiting_.add(task);
    task->changes_[1].reason = judge(*task).reason;
  } else {
    line_up(task, now);
  }
  if (options.background) start_threads();
  tell_change();
  wake_watcher();
  return false;
}

std::string SchedulerReport::find_refusal(const Task& task) const {
  if (task.spec_.deadline && *task.spec_.deadline <= Time(0)) {
    return format("its deadline passed {:.3g} s before the submission",
                  0 - seconds(*task.spec_.deadline));
  }
  const Verdict verdict = judge(task);
  return verdict.kind == Verdict::Kind::refuse ? verdict.reason : std::string();
}

TaskPointer SchedulerReport::failed_predecessor(const Task& task) const {
  for (const TaskPointer& before : task.after_) {
    if (before->is_over() ? before->state() != TaskState::done : before->failure_ != nullptr) {
      return before;
    }
  }
  return nullptr;
}

/// A tenant that comes back begins at the progress of those at work.
void SchedulerCore::wake_tenant(const std::shared_ptr<Tenant>& tenant) noexcept {
  std::optional<double> least;
  for (const auto& [name, other] : tenants_) {
    if (other == tenant || other->live == 0) continue;
    least = std::min(least.value_or(other->progress()), other->progress());
  }
  if (least) tenant->catch_up(*least);
}

void SchedulerReport::require_member(const Task& task, const char* what) const {
  if (task.core_ == this) return;
  throw InvalidArgument(format("{} {} belongs to another scheduler", what, task.label()));
}

bool SchedulerReport::is_closed() const {
  const Lock lock(mutex_);
  return is_closed_;
}

bool SchedulerCore::step() {
  Lock lock(mutex_);
  const TaskPointer task = next(lock, std::nullopt);
  lock.unlock();
  if (task == nullptr) return false;
  run(task);
  return true;
}

}  // namespace kernwright::schedule
