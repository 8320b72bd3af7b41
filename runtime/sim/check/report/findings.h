// Findings of the checks: their contents, and the list for collecting them.
#pragma once

#include "base/fault.h"

#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernwright::sim {

/// The other access of a race, or the other barrier of a divergence.
struct OtherAccess {
  std::string what;    ///< "write", "read", "atomic access", "barrier"
  int line = 0;        ///< as Fault::line; 0 when not known
  int first_line = 1;  ///< as Fault::first_line
  int ptx_line = 0;
  std::string file;
  std::string opcode;
  std::array<unsigned, 3> block{};
  std::array<unsigned, 3> thread{};
  bool thread_known = true;  ///< false: one of several threads, block and thread say nothing
  std::string value;         ///< hexadecimal, most significant byte first; empty when not known
};

/// The distance between the two accesses of a race, as far as the remedy goes: the remedy for the
/// farthest two mends the nearer ones. `copy`: an asynchronous operation without a wait.
enum class Breadth : std::uint8_t { none, warp, block, cluster, grid, copy };

/// One finding of a check, with the number of its repetitions.
struct Finding {
  Fault fault;        ///< the access at which it showed
  std::string what;   ///< as OtherAccess::what
  std::string space;  ///< "global memory", "shared memory", "local memory"; empty where none is
  std::string value;  ///< as OtherAccess::value
  std::optional<OtherAccess> other;
  std::string hint;                 ///< what to do
  std::uint64_t count = 1;          ///< how often
  Breadth breadth = Breadth::none;  ///< of a race
  std::uint64_t code = 0;           ///< code_id() of the module; 0 when not known

  /// Several lines for a person.
  std::string to_string() const;
};

/// Tells the PTX of modules apart; never 0.
std::uint64_t code_id(std::string_view ptx) noexcept;

/// Collects findings of all launches. Thread-safe.
class Findings {
 public:
  /// Beyond this many different ones only the total is counted.
  static constexpr std::size_t kDefaultLimit = 1000;

  void set_limit(std::size_t limit);
  /// Merges findings of one kind of access at one line (and other line) of one kernel; where lines
  /// are not known, at one PTX line. Of races the farthest one is shown.
  void add(Finding&& finding);
  /// All so far, in the order of their first occurrence; the list is empty afterwards.
  std::vector<Finding> take();
  /// A copy of the list.
  std::vector<Finding> list() const;
  /// Number of occurrences, also of those without room in the list. take() sets it to zero.
  std::uint64_t total() const;

 private:
  mutable std::mutex mutex_;
  std::size_t limit_ = kDefaultLimit;
  std::uint64_t total_ = 0;
  std::vector<Finding> list_;
};

}  // namespace kernwright::sim
