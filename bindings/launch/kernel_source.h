// The source texts behind kernels of simulated devices, for reports with lines of them.
#pragma once

#include "jit/program.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

namespace kernwright::python {

/// The compiler's input. Immutable, thread-safe.
class KernelSource {
 public:
  explicit KernelSource(const Program& program)
      : source(program.source()), options(program.options()) {}

  /// The text under the name `file` in the line table; null for a file on the disk.
  const std::string* find_text(const std::string& file) const;
  /// Whether the compile read that file of the user's. `path` is a canonical one.
  bool reads(const std::string& path) const;

  const kernwright::Source source;
  const ProgramOptions options;

 private:
  mutable std::once_flag looked_;
  mutable std::set<std::string> files_;  ///< canonical paths; known after the first reads()
};

/// Keeps a copy of the program's texts under the module's code (sim::code_id()). The oldest go
/// where there are many. Thread-safe.
void remember_source(const Program& program, std::uint64_t code);
/// Null when it is not known or no longer.
std::shared_ptr<const KernelSource> find_source(std::uint64_t code);

/// The text that begins on `first_line` of `file` in a line table, for reports. It is a remembered
/// text, else a file read by the compile of one, or a header of CUDA's. Nothing for any other file:
/// a #line gives a text any name it likes.
std::optional<std::string> shown_text(const std::string& file, int first_line);

/// Line `line` of `file` in the module with that code, without blanks around it and without
/// characters that steer a terminal; cut after 120 bytes. Empty when it is not known.
std::string shown_line(std::uint64_t code, const std::string& file, int line);

}  // namespace kernwright::python
