// Chooses and runs the waiting work of streams.
#include "sim/device/stream/work_queues.h"

#include "base/format.h"
#include "base/hash.h"
#include "sim/device/sim_driver.h"

#include <algorithm>

namespace kernwright::sim {
namespace {

// So much waits at most, as in the launch queue of a GPU; then issuing runs older work.
constexpr std::size_t kMostWaiting = 1024;

bool is_over(const std::shared_ptr<Mark>& mark) { return mark == nullptr || mark->done; }

std::string queue_name(const StreamUse& use) {
  if (use.stream->legacy) return "the default stream";
  return format("stream {}", use.stream->id);
}

/// Runs the work and compares its accesses. Throws Failure.
void run(QueuedWork& item, bool settled) {
  if (item.order == nullptr) {
    perform(item.work, nullptr);
    return;
  }
  AccessLog log;
  perform(item.work, &log);
  if (log.empty()) return;
  auto finding = sim_driver().order.note(item.order, log.ranges(), settled);
  if (finding) throw Failure{CUDA_ERROR_LAUNCH_FAILED, std::move(*finding)};
}

std::shared_ptr<QueuedWork> make_item(const StreamUse& use, Work&& work) {
  auto item = std::make_shared<QueuedWork>();
  item->work = std::move(work);
  StreamOrder& order = sim_driver().order;
  if (order.on()) {
    auto ordered = std::make_shared<OrderedWork>();
    ordered->name = describe(item->work);
    ordered->stream = queue_name(use);
    if (const auto* copy = std::get_if<CopyWork>(&item->work)) ordered->is_order = copy->is_order;
    ordered->clock = order.issue(*use.context, *use.stream, &ordered->actor, &ordered->step);
    item->end->clock = ordered->clock;
    item->order = std::move(ordered);
  }
  return item;
}

}  // namespace

void WorkQueues::set_seed(std::optional<std::uint64_t> seed) {
  finish_all();
  const std::lock_guard lock(mutex_);
  deferred_ = seed.has_value();
  state_ = seed.value_or(0);
  favourite_ = nullptr;
}

std::uint64_t WorkQueues::draw() {
  if (!deferred()) return 0;
  const std::lock_guard lock(mutex_);
  return splitmix(state_) | 1;
}

std::shared_ptr<Mark> WorkQueues::issue(const StreamUse& use, Work&& work,
                                        std::vector<std::shared_ptr<Mark>> after) {
  const bool later = deferred();
  if (!later && !sim_driver().order.on()) {
    try {
      perform(work, nullptr);
    } catch (const Failure& failure) {
      lose(*use.context, failure.code);
      throw;
    }
    return nullptr;
  }
  if (later) check(work);
  for (const auto& mark : after) {
    if (mark != nullptr) sim_driver().order.stream_learns(*use.stream, mark->clock);
  }
  auto item = make_item(use, std::move(work));
  if (later) {
    item->after = std::move(after);
    return enqueue(use, std::move(item));
  }
  try {
    run(*item, true);
  } catch (const Failure& failure) {
    lose(*use.context, failure.code);
    throw;
  }
  item->end->reach();
  return item->end;
}

std::shared_ptr<Mark> WorkQueues::enqueue(const StreamUse& use, std::shared_ptr<QueuedWork> item) {
  Lock lock(mutex_);
  Stream& stream = *use.stream;
  if (stream.legacy) {
    for (const StreamUse& other : active_) {
      if (other.context->id == use.context->id && other.stream->blocking()) {
        item->after.push_back(other.stream->last);
      }
    }
  } else if (stream.blocking()) {
    item->after.push_back(use.context->legacy->last);
  }
  std::erase_if(item->after, is_over);
  std::shared_ptr<Mark> end = item->end;
  stream.last = end;
  stream.queue.push_back(std::move(item));
  ++waiting_;
  const bool known = std::any_of(active_.begin(), active_.end(), [&](const StreamUse& other) {
    return other.stream == use.stream;
  });
  if (!known) active_.push_back(use);
  if (waiting_ > kMostWaiting && running_ == 0) {
    run_until(lock, [&] { return waiting_ <= kMostWaiting / 2; });
  }
  return end;
}

/// One of the streams with runnable oldest work, or null. Goes on with the last one half of the
/// time, so that one stream far ahead is as likely as all in step.
StreamUse* WorkQueues::choose() {
  std::vector<StreamUse*> ready;
  for (StreamUse& use : active_) {
    const Stream& stream = *use.stream;
    if (stream.busy || stream.queue.empty()) continue;
    const auto& after = stream.queue.front()->after;
    if (std::all_of(after.begin(), after.end(), is_over)) ready.push_back(&use);
  }
  if (ready.empty()) return nullptr;
  const std::uint64_t number = splitmix(state_);
  if ((number & 1) != 0) {
    for (StreamUse* use : ready) {
      if (use->stream.get() == favourite_) return use;
    }
  }
  StreamUse* const chosen = ready[(number >> 1) % ready.size()];
  favourite_ = chosen->stream.get();
  return chosen;
}

/// False when no work may run now. The lock is open while the work runs.
bool WorkQueues::run_one(Lock& lock) {
  StreamUse* const chosen = choose();
  if (chosen == nullptr) return false;
  const StreamUse use = *chosen;
  std::shared_ptr<QueuedWork> item = std::move(use.stream->queue.front());
  use.stream->queue.pop_front();
  use.stream->busy = true;
  --waiting_;
  ++running_;
  const bool settled = waiting_ == 0 && running_ == 1;
  lock.unlock();
  std::exception_ptr failure;
  try {
    if (use.context->lost == CUDA_SUCCESS) run(*item, settled);
  } catch (Failure& found) {
    lose(*use.context, found.code);
    if (found.report) {
      std::string& details = found.report->details;
      details += details.empty() ? "" : "\n";
      details += "found after it was issued, by a later call";
    }
    failure = std::make_exception_ptr(std::move(found));
  } catch (...) {
    failure = std::current_exception();
  }
  settle(item->work);
  const std::shared_ptr<Mark> end = item->end;
  item.reset();
  lock.lock();
  end->reach();
  --running_;
  use.stream->busy = false;
  if (use.stream->queue.empty()) {
    std::erase_if(active_, [&](const StreamUse& other) { return other.stream == use.stream; });
  }
  if (failure) keep(*use.context, failure);
  changed_.notify_all();
  return true;
}

void WorkQueues::run_until(Lock& lock, const Condition& over) {
  while (!over()) {
    if (!run_one(lock)) changed_.wait(lock);
  }
}

bool WorkQueues::holds_work(const StreamUse& use) const {
  return std::any_of(active_.begin(), active_.end(), [&](const StreamUse& other) {
    if (other.stream == use.stream) return true;
    return use.stream->legacy && other.context->id == use.context->id && other.stream->blocking();
  });
}

bool WorkQueues::holds_work(const Context& context) const {
  return std::any_of(active_.begin(), active_.end(),
                     [&](const StreamUse& other) { return other.context->id == context.id; });
}

template <typename Over>
void WorkQueues::finish_until(const Over& over) {
  if (!deferred()) return;
  Lock lock(mutex_);
  run_until(lock, over);
}

void WorkQueues::finish(const Mark& mark) {
  finish_until([&] { return mark.done.load(); });
}
void WorkQueues::finish(const StreamUse& use) {
  finish_until([&] { return !holds_work(use); });
}
void WorkQueues::finish(const Context& context) {
  finish_until([&] { return !holds_work(context); });
}
void WorkQueues::finish_all() {
  finish_until([&] { return active_.empty(); });
}

template <typename Over>
bool WorkQueues::query_whether(const Over& over) {
  if (!deferred()) return true;
  Lock lock(mutex_);
  for (std::uint64_t steps = splitmix(state_) % 3; steps != 0 && !over(); --steps) {
    if (!run_one(lock)) break;
  }
  return over();
}

bool WorkQueues::query(const Mark& mark) {
  return query_whether([&] { return mark.done.load(); });
}
bool WorkQueues::query(const StreamUse& use) {
  return query_whether([&] { return !holds_work(use); });
}

void WorkQueues::keep(const Context& context, std::exception_ptr failure) {
  const bool first = std::none_of(kept_.begin(), kept_.end(), [&](const Kept& other) {
    return other.context_id == context.id;
  });
  if (first) kept_.push_back({context.id, std::move(failure)});
}

void WorkQueues::surface(const Context& context) {
  if (!deferred()) return;
  std::exception_ptr failure;
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find(kept_, context.id, &Kept::context_id);
    if (found == kept_.end()) return;
    failure = std::move(found->failure);
    kept_.erase(found);
  }
  std::rethrow_exception(failure);
}

void WorkQueues::forget_failure(const Context& context) {
  const std::lock_guard lock(mutex_);
  std::erase_if(kept_, [&](const Kept& other) { return other.context_id == context.id; });
}

}  // namespace kernwright::sim
