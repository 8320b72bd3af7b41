// The documentation page of the ISA table, in Markdown.
#include "unit/sim/ptx/isa_page.h"

#include "base/format.h"
#include "sim/ptx/isa.h"
#include "sim/ptx/manual.h"

#include <set>
#include <string_view>
#include <vector>

namespace kernwright::sim::ptx {
namespace {

/// All instructions of the manual: runs, runs with a note, or refused.
std::string overview() {
  std::size_t runs = 0, noted = 0;
  std::string table;
  for (const ManualEntry& entry : manual_entries()) {
    const std::vector<const IsaRow*> rows = find_rows(entry);
    if (rows.empty()) {
      table += format("| `{}` | refused | {} |\n", entry.name, entry.reason);
      continue;
    }
    std::set<std::string_view> notes;
    for (const IsaRow* row : rows) {
      if (!row->note.empty() && find_entry(*row) == &entry) notes.insert(row->note);
    }
    std::string text;
    for (const std::string_view note : notes)
      text += (text.empty() ? "" : "; ") + std::string(note);
    ++(notes.empty() ? runs : noted);
    table += format("| `{}` | {} | {} |\n", entry.name,
                    notes.empty() ? "runs" : "runs, with a note", text);
  }
  return format("{} instructions run, {} with a note, {} are refused.\n\n", runs, noted,
                manual_entries().size() - runs - noted) +
         "| instruction | state | note |\n|---|---|---|\n" + table;
}

constexpr std::string_view kIntroduction =
    R"(# PTX instructions of the simulated device

Each instruction of the PTX manual runs, runs with a note, or is refused: a module with a refused
instruction raises `UnsupportedInstruction` when it is loaded. The forms of each instruction, in the
manual's own syntax, are rows of `runtime/sim/ptx/isa/*.inc`. This page is made from the tables;
a test fails when it is stale (build the target `write_isa_page` and run it to refresh).

)";

}  // namespace

std::string isa_page() {
  std::set<std::string_view> stems;
  for (const IsaRow& row : isa_rows()) stems.insert(row.stem);
  return std::string(kIntroduction) +
         format("{} opcodes in {} forms; {}", stems.size(), isa_rows().size(), overview());
}

}  // namespace kernwright::sim::ptx
