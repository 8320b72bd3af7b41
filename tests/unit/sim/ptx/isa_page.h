// Writes the documentation page of the ISA table.
#pragma once

#include <string>

namespace kernwright::sim::ptx {

/// The text of docs/ptx_coverage.md, made from the table alone.
std::string isa_page();

}  // namespace kernwright::sim::ptx
