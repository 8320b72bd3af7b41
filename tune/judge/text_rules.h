// What a text must not do, whatever it computes: read files, tell judged launches apart.
#pragma once

#include "jit/object_code.h"
#include "jit/source/source.h"
#include "tune/judge/task.h"

#include <string>
#include <vector>

namespace kernwright {

/// Something that a task does not allow.
struct Refusal {
  bool is_cheating = false;  ///< else the text is refused as one that does not compile
  std::string message;       ///< what, and why it is refused
  int line = 0;              ///< of the text, from 1; 0 where it is not known
};

/// Of the text as it stands: #embed of anything but the task's headers; __TIME__, __DATE__ and
/// __TIMESTAMP__, which make one text two programs, also where macros or joined lines put the name
/// together. The compile itself refuses includes from the machine's folders (include_closure()).
std::vector<Refusal> refused_in_text(const Source& source, const Task& task);

/// Of the PTX that the compiler made of it, where no macro and no inline assembly hides anything:
/// - device malloc, printf (words of Task::allow); the device runtime (dynamic parallelism) and any
///   other function that is not in the text;
/// - special registers that tell one launch from another, as the timed one from the checked ones:
///   clocks (word "clock"), %gridid, %pm counters, %current_graph_exec, and %envreg but for the two
///   that cooperative grids need.
/// %smid, %nsmid and their kin are allowed: they say where a block runs, not in which launch.
std::vector<Refusal> refused_in_code(const ObjectCode& ptx, const Task& task);

}  // namespace kernwright
