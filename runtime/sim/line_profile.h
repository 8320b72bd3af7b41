// The cost of kernels' lines on a simulated device: exact counts, no times.
#pragma once

#include "driver/driver_api.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace kernwright::sim {

class SourceText;

/// Sums over all warps. A request is one memory instruction of one warp (of its executing lanes).
struct LineCounts {
  std::uint64_t instructions = 0;         ///< PTX instructions that warps executed
  std::uint64_t thread_instructions = 0;  ///< the same by threads that did them
  std::uint64_t predicated_off = 0;       ///< threads that a guard kept from them
  std::uint64_t branches = 0;             ///< bra, brx.idx, and ret and exit with a guard
  std::uint64_t divergent_branches = 0;   ///< at which the warp's lanes parted
  std::uint64_t global_loads = 0, global_stores = 0;  ///< requests
  std::uint64_t global_bytes = 0;                     ///< that threads asked for
  std::uint64_t global_sectors = 0;                   ///< of 32 bytes, for each request on its own
  std::uint64_t global_ideal_sectors = 0;  ///< that the different bytes of a request would fill
  std::uint64_t global_lines = 0;          ///< of 128 bytes, for each request on its own
  std::uint64_t shared_loads = 0, shared_stores = 0;  ///< requests
  std::uint64_t shared_wavefronts = 0;                ///< passes over the 32 banks of 4 bytes
  std::uint64_t shared_ideal_wavefronts = 0;          ///< without bank conflicts
  std::uint64_t local_loads = 0, local_stores = 0;    ///< requests
  std::uint64_t local_bytes = 0;                      ///< that threads asked for
  std::uint64_t local_sectors = 0;   ///< with the words of a warp's lanes side by side
  std::uint64_t atomics = 0;         ///< requests, of global and shared memory
  std::uint64_t atomic_threads = 0;  ///< operations of single threads
  std::uint64_t atomic_passes = 0;   ///< the most threads with one address, for each request
  /// Instructions that move memory by no request of the warp (bulk copies, fragments of wmma and
  /// wgmma, other blocks' shared memory): their traffic is in none of the above.
  std::uint64_t uncounted = 0;
  std::uint64_t uncounted_bytes = 0;  ///< of global memory that those moved, at most

  LineCounts& operator+=(const LineCounts& other) noexcept;
  bool operator==(const LineCounts&) const = default;
};

/// The fields of LineCounts with their names, in their order.
struct LineCountField {
  const char* name;
  std::uint64_t LineCounts::*value;
};
std::span<const LineCountField> line_count_fields() noexcept;

/// The cost of counts beside each other, in quarters of a cycle of a multiprocessor, which starts
/// four instructions of warps, makes one pass over shared memory or one of an atomic operation, or
/// gets two sectors from its L2 in a cycle. Latency and caches are not in it.
std::uint64_t line_cost(const LineCounts& counts) noexcept;
/// One or two sentences: what costs most there, with its figures, and what to do. Empty where
/// nothing was executed.
std::string line_advice(const LineCounts& counts);

struct LineColumn {  ///< of a table of lines
  std::string name;
  std::string meaning;
};

/// Rows of counts as a table of text; "-" where there is nothing to tell.
struct LineTable {
  std::vector<LineColumn> columns;  ///< those with a value in some row
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> total;
  std::vector<double> shares;       ///< of the total's cost, for each row
  std::vector<std::string> advice;  ///< for each row; empty but for the few that cost most
  std::string note;                 ///< what the total leaves out; may be empty
};
/// `total` is the sum of the rows, and of others that are not shown.
LineTable line_table(std::span<const LineCounts> rows, const LineCounts& total);

/// The counts of one source line in launches of one kernel.
struct LineRecord {
  std::string kernel;  ///< lowered name of the entry that ran
  std::string file;    ///< as the compiler's line table names it; empty when unknown
  int line = 0;        ///< of the kernel's text, from 1; 0 for code without a line
  int first_line = 1;  ///< line of `file` on which the text begins (a string in a .py file)
  LineCounts counts;
};

struct LineProfile {
  std::vector<LineRecord> lines;                  ///< by kernel, file and line
  std::map<std::string, std::uint64_t> launches;  ///< by kernel

  LineCounts total() const noexcept;
  std::string to_json() const;
  /// A table, a row for each line, the one with the highest cost first, and advice about some.
  std::string to_text(SourceText& source) const;
};

class LineProfileRecorder;

/// During the lifetime of an object, launches are counted: those of `functions`, or all if there
/// are none. Counts do not depend on the number of host threads, except if a kernel's own work does
/// (spinning). A launch with a fault counts up to the fault. One scope at a time in a process; a
/// second one throws InvalidArgument. Makes the devices like cuInit. Not for use from several
/// threads; launches may come from any.
class LineProfileScope {
 public:
  explicit LineProfileScope(std::vector<CUfunction> functions = {});
  ~LineProfileScope();
  LineProfileScope(const LineProfileScope&) = delete;
  LineProfileScope& operator=(const LineProfileScope&) = delete;

  /// The counts so far; waits for a running launch.
  LineProfile profile() const;

 private:
  std::unique_ptr<LineProfileRecorder> recorder_;
};

}  // namespace kernwright::sim
