// The source texts behind kernels of simulated devices, for reports that show lines of them.
#pragma once

#include "jit/program.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace kernwright::python {

/// What the compiler was given besides files. Immutable.
struct KernelSource {
  kernwright::Source source;
  std::map<std::string, std::string> headers;  ///< by the name that is included

  /// The text that the line table calls `file`; null where that is a file on the disk.
  const std::string* text_of(const std::string& file) const;
};

/// Keeps a copy of the program's texts under the module's code (sim::code_id()). The oldest go
/// where there are many. Thread-safe.
void remember_source(const Program& program, std::uint64_t code);
/// Null when it is not known or no longer.
std::shared_ptr<const KernelSource> source_of_code(std::uint64_t code);

}  // namespace kernwright::python
