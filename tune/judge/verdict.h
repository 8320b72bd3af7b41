// The findings of a judgement, for programs and for people.
#pragma once

#include "base/diagnostic.h"
#include "tune/judge/comparison.h"
#include "tune/measure/statistics.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernwright {

enum class VerdictStatus : std::uint8_t {
  accepted,
  compile,     ///< the text does not compile, lacks the entry, or has a part refused by the task
  finding,     ///< of the simulated device, a write outside of its buffers on a GPU, or a result
               ///< that depends on the order of warps and blocks
  wrong,       ///< a result differs from the reference's
  timeout,     ///< the compile or a launch took too long
  crash,       ///< a launch was refused, or cost the context or its process
  impossible,  ///< faster than possible on the device for the task's bytes and operations
  cheating,    ///< the result depends on earlier launches or on what memory held before; a const
               ///< argument was changed; the text tells the judged launches apart
};

/// "accepted", "compile", "finding", "wrong", "timeout", "crash", "impossible", "cheating".
const char* verdict_status_name(VerdictStatus status) noexcept;

/// One find of a check, made of a sim::Finding; or "order": another order of warps and blocks gives
/// another result.
struct JudgeFinding {
  std::string kind;  ///< "bounds", "init", "race", "sync", "order", ...
  std::string message;
  std::string hint;
  std::string file;
  int line = 0;        ///< of the kernel's text, from 1; 0 when unknown
  int other_line = 0;  ///< of the other access of a race
  std::string opcode;
  std::array<unsigned, 3> block{};
  std::array<unsigned, 3> thread{};
  std::string allocation;
  std::string details;
  std::uint64_t count = 1;
};

/// One case on one device.
struct CaseResult {
  int number = 0;
  std::uint64_t seed = 0;              ///< inputs(seed, number) gives its inputs again
  std::vector<std::string> arguments;  ///< "float32[1024]", "3"
  std::string device;                  ///< "simulated" or the GPU's name
  std::string status;                  ///< "correct", or as the verdict's
  std::string message;                 ///< the mistake, for a person; empty when correct
  std::string argument;                ///< the argument with the difference: "y"
  std::optional<Difference> difference;
};

/// Times of one kernel in milliseconds; counts on the simulated device.
struct JudgeTiming {
  bool is_counted = false;  ///< no clock: `unit` is "instructions + transactions"
  std::string unit = "ms";
  double median = 0;
  Interval interval;  ///< of the median, 95 %
  std::vector<double> samples;
  int case_number = 0;
};

struct Verdict {
  VerdictStatus status = VerdictStatus::accepted;
  std::string reason;                 ///< one sentence; empty when accepted
  std::vector<std::string> warnings;  ///< about the task, for its author
  std::vector<Diagnostic> diagnostics;
  std::vector<JudgeFinding> findings;
  std::vector<CaseResult> cases;
  std::optional<JudgeTiming> timing;
  std::optional<JudgeTiming> baseline;
  std::optional<double> speedup;  ///< baseline's median over that of the kernel
  std::optional<double> floor;    ///< least time of the task on the device, in timing's unit
  std::string floor_reason;       ///< "25.2 MB at 3350 GB/s"
  std::uint64_t seed = 0;         ///< replays the judgement
  std::string device;             ///< the timed device
  double compile_seconds = 0, check_seconds = 0, time_seconds = 0, seconds = 0;

  bool is_accepted() const noexcept { return status == VerdictStatus::accepted; }
  /// One object; keys are the members' names. Numbers unknown to JSON (NaN) are null.
  std::string to_json() const;
};

}  // namespace kernwright
