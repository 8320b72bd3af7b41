// Looks up the rows of each instruction of the PTX manual.
#include "sim/ptx/manual.h"

#include "sim/ptx/isa.h"
#include "sim/ptx/modifier_sets.h"

#include <algorithm>

namespace kernwright::sim::ptx {
namespace {

constexpr ManualEntry kEntries[] = {
#define KW_MANUAL(name, reason) {name, reason},
#include "sim/ptx/manual.inc"
#undef KW_MANUAL
};

/// Takes the next word off `text`; words stand between dots, commas and brackets.
std::string_view take_word(std::string_view& text) {
  constexpr std::string_view kMarks = ".,[]{}";
  text.remove_prefix(std::min(text.size(), text.find_first_not_of(kMarks)));
  const std::string_view word = text.substr(0, text.find_first_of(kMarks));
  text.remove_prefix(word.size());
  return word;
}

/// Whether `element` of a pattern, a word or the name of a set, can read as `word`.
bool admits(std::string_view element, std::string_view word) {
  if (element == word) return true;
  const std::span<const Word> set = named_set(element);
  return std::any_of(set.begin(), set.end(), [&](const Word& w) { return w.text == word; });
}

bool fits(const IsaRow& row, std::string_view name) {
  if (take_word(name) != row.stem) return false;
  std::string_view pattern = row.modifiers;
  for (std::string_view word = take_word(name); !word.empty(); word = take_word(name)) {
    std::string_view element = take_word(pattern);
    while (!element.empty() && !admits(element, word)) element = take_word(pattern);
    if (element.empty()) return false;
  }
  return true;
}

}  // namespace

std::span<const ManualEntry> manual_entries() noexcept { return kEntries; }

std::vector<const IsaRow*> find_rows(const ManualEntry& entry) {
  std::vector<const IsaRow*> rows;
  for (const IsaRow& row : isa_rows()) {
    if (fits(row, entry.name)) rows.push_back(&row);
  }
  return rows;
}

const ManualEntry* find_entry(const IsaRow& row) {
  const ManualEntry* best = nullptr;
  for (const ManualEntry& entry : kEntries) {
    if (!fits(row, entry.name)) continue;
    if (best == nullptr || entry.name.size() > best->name.size()) best = &entry;
  }
  return best;
}

std::string_view refusal_reason(std::string_view opcode) {
  const std::size_t dot = std::min(opcode.size(), opcode.find('.'));
  IsaRow as_row{};
  as_row.stem = opcode.substr(0, dot);
  as_row.modifiers = opcode.substr(dot);
  const ManualEntry* best = nullptr;
  for (const ManualEntry& entry : kEntries) {
    if (entry.reason.empty() || !fits(as_row, entry.name) || !find_rows(entry).empty()) continue;
    if (best == nullptr || entry.name.size() > best->name.size()) best = &entry;
  }
  return best != nullptr ? best->reason : std::string_view();
}

}  // namespace kernwright::sim::ptx
