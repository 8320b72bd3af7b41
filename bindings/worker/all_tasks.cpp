// Joins the tables of the rooms; a room with tasks of its own adds a line.
#include "bindings/worker/all_tasks.h"

namespace kernwright {
namespace {

void add(TaskTable& all, const TaskTable& room) { all.insert(room.begin(), room.end()); }

}  // namespace

const TaskTable& all_worker_tasks() {
  static const TaskTable& table = *[] {
    auto* all = new TaskTable;
    add(*all, worker_tasks());
    return all;
  }();
  return table;
}

}  // namespace kernwright
