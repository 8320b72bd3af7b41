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

/// In the text itself: more than kMostJudgedBytes; #embed of anything but the task's headers;
/// __TIME__, __DATE__ and __TIMESTAMP__, which make two programs of one text, also if joined lines
/// or pasting macros form the name. The compile itself refuses includes from the machine's folders
/// (include_closure()).
std::vector<Refusal> refused_in_text(const Source& source, const Task& task);
inline constexpr std::size_t kMostJudgedBytes = std::size_t{1} << 20;

/// Whether the text may see the name of its file: __FILE__ and what has it inside (assert,
/// std::source_location, macros of libcu++ and CUB), also if pasting macros form the name.
bool may_see_its_name(const Source& source, const Task& task);

/// The text without its #line directives, which would put other files and lines into messages.
/// Lines stay lines.
std::string without_line_directives(std::string text);

/// In the compiler's PTX, where no macro and no inline assembly hides anything:
/// - device malloc, printf (words of Task::allow); the device runtime (dynamic parallelism) and any
///   other function from outside the text;
/// - special registers that tell one launch from another, as the timed one from the checked ones:
///   clocks (word "clock"), %gridid, %pm counters, %current_graph_exec, and %envreg but for the two
///   used by cooperative grids.
/// %smid, %nsmid and similar ones are allowed: they tell where a block runs, not in which launch.
/// So are the clocks of libcu++'s waits (cuda::barrier, cuda::pipeline, waiting atomics), since
/// they tell the time to nobody: `waits_by_clock` becomes true. This is certain only if the same
/// text, compiled without line numbers, has_no_places(): inline PTX could name a place of libcu++.
std::vector<Refusal> refused_in_code(const ObjectCode& ptx, const Task& task, bool& waits_by_clock);
/// Whether PTX names no file and no line.
bool has_no_places(const ObjectCode& ptx);

}  // namespace kernwright
