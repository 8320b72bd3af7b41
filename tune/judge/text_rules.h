// Parts forbidden in any text: reading files, and telling judged launches apart.
#pragma once

#include "jit/object_code.h"
#include "jit/source/source.h"
#include "tune/judge/task.h"

#include <string>
#include <vector>

namespace kernwright {

/// Something not allowed by a task.
struct Refusal {
  bool is_cheating = false;  ///< else the text is refused like a text with compile errors
  std::string message;       ///< the forbidden part, and the reason
  int line = 0;              ///< of the text, from 1; 0 if unknown
};

/// In the text itself: #embed of anything but the task's headers; __TIME__, __DATE__ and
/// __TIMESTAMP__, which make two programs of one text, also if macros or joined lines form the
/// name. The compile itself refuses includes from the machine's folders (include_closure()).
std::vector<Refusal> refused_in_text(const Source& source, const Task& task);

/// In the compiler's PTX, where no macro and no inline assembly hides anything:
/// - device malloc, printf (words of Task::allow); the device runtime (dynamic parallelism) and any
///   other function from outside the text;
/// - special registers that tell one launch from another, as the timed one from the checked ones:
///   clocks (word "clock"), %gridid, %pm counters, %current_graph_exec, and %envreg but for the two
///   used by cooperative grids.
/// %smid, %nsmid and similar ones are allowed: they tell where a block runs, not in which launch.
std::vector<Refusal> refused_in_code(const ObjectCode& ptx, const Task& task);

}  // namespace kernwright
