// The documentation page of the ISA table, in Markdown.
#include "unit/sim/ptx/isa_page.h"

#include "base/format.h"
#include "sim/ptx/isa.h"
#include "sim/ptx/manual.h"
#include "sim/ptx/modifier_sets.h"

#include <map>
#include <set>
#include <string_view>
#include <vector>

namespace kernwright::sim::ptx {
namespace {

/// Names of the sets that a pattern uses: words of capital letters behind a dot.
void collect_sets(std::string_view pattern, std::set<std::string_view>& used) {
  for (const NamedSet& set : named_sets()) {
    const std::string dotted = "." + std::string(set.name);
    for (std::size_t at = pattern.find(dotted); at != std::string_view::npos;
         at = pattern.find(dotted, at + 1)) {
      const std::size_t end = at + dotted.size();
      const bool whole = end == pattern.size() || pattern[end] == '.' || pattern[end] == '[' ||
                         pattern[end] == ']';
      if (whole) used.insert(set.name);
    }
  }
}

std::string escape(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '|') result += '\\';
    result += c;
  }
  return result;
}

std::string set_lines(const std::set<std::string_view>& used) {
  std::string lines;
  for (const NamedSet& set : named_sets()) {
    if (!used.contains(set.name)) continue;
    lines += format("- `{}`:", set.name);
    for (const Word& word : set.words) lines += format(" `.{}`", word.text);
    lines += '\n';
  }
  return lines;
}

/// All instructions of the manual: runs, runs with a note, or refused.
std::string overview() {
  std::size_t runs = 0, noted = 0;
  std::string table;
  for (const ManualEntry& entry : manual_entries()) {
    const std::vector<const IsaRow*> rows = rows_of(entry);
    if (rows.empty()) {
      table += format("| `{}` | refused | {} |\n", entry.name, entry.reason);
      continue;
    }
    std::set<std::string_view> notes;
    for (const IsaRow* row : rows) {
      if (!row->note.empty() && entry_of(*row) == &entry) notes.insert(row->note);
    }
    std::string text;
    for (const std::string_view note : notes)
      text += (text.empty() ? "" : "; ") + std::string(note);
    ++(notes.empty() ? runs : noted);
    table += format("| `{}` | {} | {} |\n", entry.name,
                    notes.empty() ? "runs" : "runs, with a note", text);
  }
  return format("{} run, {} with a note, {} are refused.\n\n", runs, noted,
                manual_entries().size() - runs - noted) +
         "| instruction | state | note |\n|---|---|---|\n" + table;
}

constexpr std::string_view kIntroduction =
    R"(# PTX instructions of the simulated device

This page is made from the table in `runtime/sim/ptx/isa/*.inc`; a test fails when it is stale
(build the target `write_isa_page` and run it to refresh). Whatever is not listed raises
`UnsupportedInstruction` when the module is loaded.

How to read a row: `[.x]` may be absent, `.{x,y}` is a choice, words in capitals are the sets at
the end. Words may stand in any order, as for ptxas, but types among themselves. Operands:
`d` and `p` are destinations (`p` a predicate, `p|q` one or two), `[a]` an address, `{d}` a vector
of the `.vec` length, `{d*4}` braces around four; behind a colon stands the type where it is not
the first of the opcode (a digit: the type at that place; `w`: twice as wide). `?` may be absent,
`~` a wider register fits, `_` the sink is allowed, `#` constant only, `!` register only, `^` may be
negated, `$` may be a symbol.

)";

}  // namespace

std::string isa_page() {
  std::map<std::string_view, std::vector<const IsaRow*>> stems;
  std::set<std::string_view> used;
  for (const IsaRow& row : isa_rows()) {
    stems[row.stem].push_back(&row);
    collect_sets(row.modifiers, used);
  }
  std::string page(kIntroduction);
  page += format("{} opcodes in {} forms.\n", stems.size(), isa_rows().size());
  page += "\n## Every instruction of the PTX manual\n\n" + overview();
  for (const auto& [stem, rows] : stems) {
    page += format("\n## {}\n\n| form | operands | from sm | note |\n|---|---|---|---|\n", stem);
    for (const IsaRow* row : rows) {
      const std::string sm = row->min_sm == 0 ? std::string() : std::to_string(row->min_sm);
      page += format("| `{}{}` | `{}` | {} | {} |\n", stem, escape(row->modifiers),
                     escape(row->operands), sm, row->note);
    }
  }
  page += "\n## Sets\n\n" + set_lines(used);
  return page;
}

}  // namespace kernwright::sim::ptx
