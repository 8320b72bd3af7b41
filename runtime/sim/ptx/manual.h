// The instructions of the PTX manual and their state on the simulated device.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace kernwright::sim::ptx {

struct IsaRow;  // ptx/isa.h

struct ManualEntry {
  std::string_view name;    ///< "cp.async.bulk": the stem and the words that tell it from others
  std::string_view reason;  ///< why it is refused, where the table has no row for it
};

/// In the manual's order.
std::span<const ManualEntry> manual_entries() noexcept;

/// The rows of the name: same stem, and a pattern with its words in their order.
std::vector<const IsaRow*> find_rows(const ManualEntry& entry);

/// The longest name for the row; null if the manual has none.
const ManualEntry* find_entry(const IsaRow& row);

/// The reason for refusing `opcode`, which has no row in the table; empty if the manual lacks it
/// too.
std::string_view refusal_reason(std::string_view opcode);

}  // namespace kernwright::sim::ptx
