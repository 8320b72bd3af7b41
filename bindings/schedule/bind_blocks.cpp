// `with` blocks whose launches belong to a task, or are tasks.
#include "bindings/schedule/bind_blocks.h"

#include "base/errors.h"
#include "bindings/schedule/task_object.h"
#include "bindings/support/current.h"
#include "bindings/support/gil.h"
#include "core/device.h"
#include "core/launch/launch_hook.h"
#include "schedule/task_here.h"

#include <exception>
#include <thread>
#include <utility>

namespace kernwright::python {
namespace {

using schedule::Scheduler;
using schedule::TaskSpec;

/// scheduler.task(...): what a `with` block does, as a task.
class BlockTask {
 public:
  BlockTask(const py::object& owner, std::shared_ptr<Scheduler> scheduler, TaskSpec spec)
      : owner_(owner.ptr()),
        owner_kept_(keep_alive(owner)),
        scheduler_(std::move(scheduler)),
        spec_(std::move(spec)) {}
  /// The object of a block that was never left may go on any thread.
  ~BlockTask() {
    if (here_ && !here_->is_innermost()) schedule::TaskHere::abandon(std::move(here_));
  }
  BlockTask(const BlockTask&) = delete;
  BlockTask& operator=(const BlockTask&) = delete;

  std::unique_ptr<TaskObject> enter() {
    if (here_) throw InvalidArgument("this task has begun: call task() for each block");
    Device& device = scheduler_->device();
    outer_ = current_stream(device);
    if (!outer_) outer_ = Stream::legacy(device);
    here_ = open();
    thread_ = std::this_thread::get_id();
    enter_stream(here_->stream());
    return std::unique_ptr<TaskObject>(new TaskObject{py::reinterpret_borrow<py::object>(owner_),
                                                      scheduler_.get(), here_->task(), nullptr});
  }
  /// Later work of the thread's stream goes behind that of the block.
  void exit(const py::object& error) {
    if (!here_ || thread_ != std::this_thread::get_id()) {
      throw InvalidArgument("the block of a task ends on the thread where it began");
    }
    if (!here_->is_innermost()) {
      throw InvalidArgument("the block of a task ends behind the blocks of tasks inside it");
    }
    const std::unique_ptr<schedule::TaskHere> here = std::move(here_);
    std::exception_ptr failure;
    if (!error.is_none()) failure = std::make_exception_ptr(Error(short_repr(error)));
    leave_stream(here->stream());
    const GilRelease unlocked;
    here->end(std::move(failure));
    outer_.wait(here->stream().record());
  }

 private:
  /// Looks at Python's signals while the task waits.
  std::unique_ptr<schedule::TaskHere> open() {
    const auto is_interrupted = [] {
      const GilAcquire held;
      return held && PyErr_CheckSignals() != 0;
    };
    try {
      return without_gil([&] { return scheduler_->open(spec_, outer_, is_interrupted); });
    } catch (const schedule::TaskCancelled&) {
      if (PyErr_Occurred() != nullptr) throw py::error_already_set();
      throw;
    }
  }

  PyObject* const owner_;
  const std::shared_ptr<void> owner_kept_;
  const std::shared_ptr<Scheduler> scheduler_;
  const TaskSpec spec_;
  Stream outer_;
  std::unique_ptr<schedule::TaskHere> here_;
  std::thread::id thread_;
};

/// scheduler._launches(...): a block in which each launch is a task.
class BlockLaunches {
 public:
  BlockLaunches(std::shared_ptr<Scheduler> scheduler, TaskSpec spec)
      : hook_(std::move(scheduler), std::move(spec)) {}
  void enter() { scope_ = std::make_unique<LaunchHookScope>(&hook_); }
  void exit() { scope_.reset(); }

 private:
  schedule::LaunchTasks hook_;
  std::unique_ptr<LaunchHookScope> scope_;
};

}  // namespace

void bind_blocks(py::module_& m) {
  py::class_<BlockTask, Unlocked<BlockTask>>(m, "_BlockTask")
      .def("__enter__", &BlockTask::enter)
      .def("__exit__", [](BlockTask& b, const py::object&, const py::object& error,
                          const py::object&) { b.exit(error); });
  py::class_<BlockLaunches, Unlocked<BlockLaunches>>(m, "_BlockLaunches")
      .def("__enter__", &BlockLaunches::enter)
      .def("__exit__", [](BlockLaunches& b, const py::args&) { b.exit(); });
}

py::object make_block_task(const py::object& owner, std::shared_ptr<Scheduler> scheduler,
                           TaskSpec spec) {
  return py::cast(Unlocked<BlockTask>(new BlockTask(owner, std::move(scheduler), std::move(spec))));
}

py::object make_block_launches(std::shared_ptr<Scheduler> scheduler, TaskSpec spec) {
  return py::cast(
      Unlocked<BlockLaunches>(new BlockLaunches(std::move(scheduler), std::move(spec))));
}

}  // namespace kernwright::python
