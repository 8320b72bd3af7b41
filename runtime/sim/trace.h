// A debugger's view of one thread of a launch on a simulated device: its steps, in order.
#pragma once

#include "base/fault.h"
#include "driver/driver_api.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kernwright::sim {

class SourceText;

/// A value of up to 128 bits.
struct TraceBits {
  std::uint64_t low = 0, high = 0;
  bool operator==(const TraceBits&) const = default;
};

/// A register write of an instruction. `type` is PTX's word for the instruction's type: "f32",
/// "s32", "pred", "f16x2"; "b32" if there is none.
struct TraceWrite {
  std::string reg;  ///< "%r5"
  std::string type;
  std::optional<TraceBits> before;  ///< nothing at the thread's first write of it
  TraceBits after;
};

/// The memory of the thread's load, store, atomic operation or copy.
struct TraceAccess {
  std::string what;           ///< "load", "store", "atomic"
  std::string space;          ///< "global", "shared", "local", "param"
  std::uint64_t address = 0;  ///< as the instruction has it
  std::uint32_t bytes = 0;
  std::string type;  ///< of one element
  /// Elements before and after; empty where the memory could not be read, `after` of loads too.
  std::vector<TraceBits> before, after;
};

struct TraceStep {
  std::uint64_t index = 0;  ///< among all steps of the thread, from 0
  std::string file;         ///< as the compiler's line table names it; empty when unknown
  int line = 0;             ///< of the kernel's text, from 1; 0 when unknown
  int first_line = 1;       ///< line of `file` on which the text begins (a string in a .py file)
  int ptx_line = 0;
  std::string function;         ///< in which it stands (lowered name)
  std::uint32_t depth = 0;      ///< calls around it
  std::string instruction;      ///< "add.f32 %f3, %f1, %f2"
  bool predicated_off = false;  ///< its guard kept the thread from doing it
  std::optional<bool> taken;    ///< of a branch: whether the thread jumped
  bool returned = false;        ///< the part of a call behind the return
  bool complete = true;         ///< false: the launch stopped in it, or waits in it for ever
  std::vector<TraceWrite> writes;
  std::vector<TraceAccess> accesses;
  std::string printed;  ///< by a printf of the thread
};

struct TraceRequest {
  CUfunction function = nullptr;
  std::array<unsigned, 3> block{}, thread{};
  std::uint64_t launch = 0;     ///< which launch of the function, from 0
  std::uint64_t skip = 0;       ///< steps to pass over
  std::uint64_t limit = 10000;  ///< steps to keep after those
};

struct Trace {
  TraceRequest request;
  std::uint64_t launches = 0;  ///< of the function while the scope lived
  std::string kernel;          ///< lowered name; empty when the launch did not happen
  std::array<unsigned, 3> grid{}, block_shape{};  ///< of the launch
  /// The block or thread is outside the launch, so the launch ran without a trace.
  bool outside = false;
  std::vector<TraceStep> steps;
  std::uint64_t total = 0;     ///< steps that the thread did, kept or not
  std::optional<Fault> fault;  ///< what stopped the launch, whichever thread did it

  std::string to_json() const;
  /// The executed lines, each with its instructions and their changes. `source` has the text of the
  /// lines.
  std::string to_text(SourceText& source) const;
  std::string to_text() const;  ///< without them
};

/// The text of a value of this PTX type: "1.5", "-3", "true", "(1, 2)"; bits as "0x0000002a".
std::string trace_value(const std::string& type, const TraceBits& bits);

class TraceRecorder;

/// During the lifetime of an object, one thread of one launch of a function is traced; this launch
/// runs its blocks one after the other. One scope at a time in a process; a second one throws
/// InvalidArgument. Makes the devices like cuInit. Not for use from several threads.
class TraceScope {
 public:
  explicit TraceScope(const TraceRequest& request);
  ~TraceScope();
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;

  /// The trace so far. Call while no launch of the function runs.
  Trace trace() const;

 private:
  std::unique_ptr<TraceRecorder> recorder_;
};

}  // namespace kernwright::sim
