// Schedulers of partitions of a device.
#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"
#include "memory/reclaim.h"
#include "schedule/admission.h"
#include "schedule/scheduler.h"
#include "schedule/scheduler_core.h"

#include <algorithm>
#include <utility>

namespace kernwright::schedule {

int SchedulerState::multiprocessors() const {
  const int given = options.multiprocessors;
  return given > 0 ? given : device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
}

int Scheduler::multiprocessors() const { return core_->multiprocessors(); }

std::unique_ptr<Scheduler> Scheduler::partition(int multiprocessors, SchedulerOptions options) {
  if (core_->options.multiprocessors > 0)
    throw InvalidArgument("a scheduler of a partition has no partitions: ask that of the device");
  if (is_closed()) throw InvalidArgument("the scheduler is closed: it makes no partitions");
  Device& on = device();
  const PartitionRequest request{
      .multiprocessors = multiprocessors, .memory = options.memory, .share = options.share};
  Partition partition;
  if (partition_rules(on).supported) {
    partition = make_partitions(on, {&request, 1}).front();
  } else if (multiprocessors < 1 || multiprocessors > this->multiprocessors()) {
    const int all = this->multiprocessors();
    throw PartitionError(
        format("{} multiprocessors asked, {} has {}", multiprocessors, on.identify(), all),
        multiprocessors, all, 1, 1);
  }
  const int given = partition ? partition.multiprocessors() : multiprocessors;
  core_->reap(true);  // what tasks hold that are done is free
  Budget& budget = core_->budget_;
  if (options.memory == 0) {
    const double part = static_cast<double>(given) / static_cast<double>(this->multiprocessors());
    options.memory =
        std::min(static_cast<std::uint64_t>(part * static_cast<double>(budget.capacity().memory)),
                 budget.free().memory);
  }
  const Amount asked{.memory = options.memory};
  std::optional<Reservation> reserved;
  if (asked.memory > 0) reserved = budget.reserve(asked);
  if (!reserved) {
    throw InvalidArgument(format("a partition with {} bytes of memory: {}", options.memory,
                                 describe_shortage(asked, budget, {})));
  }
  options.reserved = std::shared_ptr<Reservation>(
      new Reservation(std::move(*reserved)),
      [parent = std::weak_ptr<SchedulerCore>(core_)](Reservation* held) {
        delete held;
        if (const auto core = parent.lock()) core->note_room();
      });
  options.multiprocessors = given;
  options.clock = core_->options.clock;
  options.background = core_->options.background;
  if (!options.cut) options.cut = core_->options.cut;
  options.yields = core_->options.yields;
  if (partition) {
    options.make_stream = [partition](Device&, int priority) { return partition.stream(priority); };
  } else {
    options.most_blocks = static_cast<std::uint64_t>(given);
  }
  return std::make_unique<Scheduler>(on, std::move(options));
}

}  // namespace kernwright::schedule
