// A fault of a kernel on a simulated device: kind, place, thread, memory. Plain data.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace kernwright {

/// Kinds of faults; the spelling for users comes from fault_kind_name().
enum class FaultKind : std::uint8_t {
  none,
  bounds,          ///< access outside every allocation
  alignment,       ///< address not a multiple of the access size
  use_after_free,  ///< access to an allocation that was freed
  init,            ///< read of memory that was never written
  race,            ///< two unordered accesses, one of them a write
  sync,            ///< barrier or *.sync that can never complete
  trap,            ///< trap instruction or __trap()
  assertion,       ///< device-side assert() failed
  timeout,         ///< instruction budget or time used up
  interrupted,     ///< a signal ended the launch
  unsupported,     ///< an instruction the simulated device does not know (found at load)
  invalid_ptx,     ///< malformed PTX (found at load)
};

/// "bounds", "alignment", "use-after-free", "init", "race", "sync", "trap", "assert", ...
const char* fault_kind_name(FaultKind kind) noexcept;

/// Another place of the program in a fault: a waiting thread and its line. As in Fault.
struct FaultPlace {
  std::string what;  ///< "warp 2: lanes 0x0000ffff wait for a barrier"
  std::string file;
  int line = 0;
  int first_line = 1;
  int ptx_line = 0;
  std::string opcode;

  /// One line: what, and where.
  std::string to_string() const;
};

/// What went wrong, where, and in which thread. A DeviceFault is the exception of a fault that
/// ended a launch. A sim::Finding is a fault in the list of the checks: with the other access, a
/// hint and a count. Zero or empty where a field does not apply.
struct Fault {
  FaultKind kind = FaultKind::none;
  std::string message;  ///< one line for a person, without the location
  std::string kernel;   ///< entry function that ran (lowered name)
  std::string file;     ///< source file as the compiler's line table names it
  int line = 0;         ///< line of the kernel's text, counted from 1; 0 when unknown
  int first_line = 1;   ///< line of `file` on which the text begins (a string in a .py file)
  int ptx_line = 0;     ///< line of the PTX text, counted from 1
  std::string opcode;   ///< the PTX instruction, e.g. "ld.global.f32"
  std::array<unsigned, 3> block{};
  std::array<unsigned, 3> thread{};
  std::uint64_t address = 0;
  std::uint64_t access_size = 0;   ///< bytes
  std::string allocation;          ///< nearest allocation and by how many bytes it was missed
  std::vector<FaultPlace> places;  ///< further lines, in front of `details`
  std::string details;             ///< further lines

  /// Several lines: message, location, allocation, places, details.
  std::string to_string() const;
  /// The lines of places and details alone.
  std::string further_lines() const;
  /// Sets for all lines the first line of their text within its file: `find_first_line(file)`, 1
  /// for a file of its own.
  template <typename F>
  void place_texts(F find_first_line) {
    first_line = find_first_line(file);
    renumber_assertion();
    for (FaultPlace& place : places) place.first_line = find_first_line(place.file);
  }

 private:
  /// The message of an assertion names the line too, as the compiler counts it.
  void renumber_assertion();
};

/// "app.py:44 (line 4 of the kernel's text)": `line` counts from `first_line` of `file` on.
std::string source_place(const std::string& file, int line, int first_line);

}  // namespace kernwright
