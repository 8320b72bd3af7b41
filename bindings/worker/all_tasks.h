// The tasks of all layers in one table.
#pragma once

#include "worker/tasks.h"

namespace kernwright {

/// The tasks of the program kernwright-worker: the tables of the layers joined. Kept to the end of
/// the process.
const TaskTable& all_worker_tasks();

}  // namespace kernwright
