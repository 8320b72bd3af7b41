// Joins the tables of the layers; one with tasks of its own adds a line.
#include "bindings/worker/all_tasks.h"

#include "tune/judge/series_task.h"
#include "tune/measure/measure_task.h"
#include "worker/device/device_tasks.h"

namespace kernwright {
namespace {

void add(TaskTable& all, const TaskTable& more) { all.insert(more.begin(), more.end()); }

}  // namespace

const TaskTable& all_worker_tasks() {
  static const TaskTable& table = *[] {
    auto* all = new TaskTable;
    add(*all, worker_tasks());
    add(*all, device_tasks());
    add(*all, judge_tasks());
    add(*all, measure_tasks());
    return all;
  }();
  return table;
}

}  // namespace kernwright
