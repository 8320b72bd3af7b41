// What lines cost, as a table of text, and advice about those that cost most.
#include "base/counted.h"
#include "base/format.h"
#include "sim/line_profile.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

namespace kernwright::sim {
namespace {

// Quarters of a cycle of a multiprocessor; an instruction of a warp is one. docs/ has these too.
constexpr double kPass = 4;
constexpr double kSector = 2;

constexpr double kWarpLanes = 32;
constexpr std::size_t kMostAdvice = 5;
constexpr std::uint64_t kLeastShare = 20;  ///< advice is for lines of a twentieth of the cost
constexpr double kLeastLoss = 0.125;       ///< of a line's cost is worth a word

double count(std::uint64_t value) { return static_cast<double>(value); }

double ratio(std::uint64_t a, std::uint64_t b) { return count(a) / count(b); }

std::uint64_t global_requests(const LineCounts& c) { return c.global_loads + c.global_stores; }
std::uint64_t shared_requests(const LineCounts& c) { return c.shared_loads + c.shared_stores; }

std::string conflicts_advice(const LineCounts& c) {
  return format(
      "Bank conflicts: {:.1f} passes over the banks of shared memory for each request, and {:.1f} "
      "would do. Pad the rows of the array by one element, or permute its columns.",
      ratio(c.shared_wavefronts, shared_requests(c)),
      ratio(c.shared_ideal_wavefronts, shared_requests(c)));
}

std::string scatter_advice(const LineCounts& c) {
  return format(
      "Scattered addresses: a request touches {:.1f} sectors of global memory, and its bytes would "
      "fill {:.1f}. Let neighbouring threads use neighbouring addresses, or reorder the data in "
      "shared memory.",
      ratio(c.global_sectors, global_requests(c)),
      ratio(c.global_ideal_sectors, global_requests(c)));
}

std::string contention_advice(const LineCounts& c) {
  return format(
      "Contended atomics: {:.1f} threads of a request meet at one address. Add up within the warp "
      "or in shared memory first, with one atomic operation at the end.",
      ratio(c.atomic_passes, c.atomics));
}

std::string local_advice(const LineCounts& c) {
  return format(
      "Local memory: {} bytes. Index arrays by constants (unroll the loop), so that they stay in "
      "registers, or keep them in shared memory.",
      c.local_bytes);
}

std::string idle_lanes_advice(const LineCounts& c) {
  const double active = ratio(c.thread_instructions, c.instructions);
  if (c.divergent_branches != 0) {
    return format(
        "Divergence: lanes part at {} of {} branches, and {:.1f} of 32 threads work at an "
        "instruction. Let whole warps go one way, or compute both values and select one.",
        c.divergent_branches, c.branches, active);
  }
  return format(
      "Idle lanes: {:.1f} of 32 threads work at an instruction. Make blocks of whole warps, and "
      "let all lanes of a warp take part in a branch or a loop.",
      active);
}

std::string instructions_advice(const LineCounts& c) {
  return format(
      "Instructions: warps execute {}. Move what does not change out of loops, unroll them, or let "
      "a thread compute several elements.",
      c.instructions);
}

std::string shared_advice(const LineCounts& c) {
  return format(
      "Shared memory: {}, each with {:.1f} passes, few or none of them too many. Keep values that "
      "are used again in registers.",
      counted(shared_requests(c), "request"), ratio(c.shared_wavefronts, shared_requests(c)));
}

std::string global_advice(const LineCounts& c) {
  return format(
      "Global memory: {}, each with {:.1f} sectors, few or none of them too many. Keep values that "
      "are used again in registers or shared memory, or use a narrower type.",
      counted(global_requests(c), "request"), ratio(c.global_sectors, global_requests(c)));
}

std::string atomics_advice(const LineCounts& c) {
  return format(
      "Atomics: {}, {:.1f} threads of one at the same address. Add up in registers or shared "
      "memory first, so that there are fewer.",
      counted(c.atomics, "request"), ratio(c.atomic_passes, c.atomics));
}

/// A reason of a cost: how much of it there is, and what to say.
struct CostReason {
  double (*cost)(const LineCounts&);
  std::string (*advice)(const LineCounts&);
};

double idle_lanes(const LineCounts& c) {
  return static_cast<double>(c.instructions) -
         static_cast<double>(c.thread_instructions) / kWarpLanes;
}

/// What other addresses or another flow would save.
constexpr CostReason kLosses[] = {
    {[](const LineCounts& c) {
       return kPass * count(c.shared_wavefronts - c.shared_ideal_wavefronts);
     },
     conflicts_advice},
    {[](const LineCounts& c) { return kSector * count(c.global_sectors - c.global_ideal_sectors); },
     scatter_advice},
    {[](const LineCounts& c) { return kPass * count(c.atomic_passes - c.atomics); },
     contention_advice},
    {[](const LineCounts& c) { return kSector * count(c.local_sectors); }, local_advice},
    {idle_lanes, idle_lanes_advice},
};

/// All that a line costs.
constexpr CostReason kParts[] = {
    {[](const LineCounts& c) { return count(c.instructions); }, instructions_advice},
    {[](const LineCounts& c) { return kPass * count(c.shared_wavefronts); }, shared_advice},
    {[](const LineCounts& c) { return kSector * count(c.global_sectors); }, global_advice},
    {[](const LineCounts& c) { return kPass * count(c.atomic_passes); }, atomics_advice},
    {[](const LineCounts& c) { return kSector * count(c.local_sectors); }, local_advice},
};

const CostReason& largest(std::span<const CostReason> reasons, const LineCounts& counts) {
  return *std::max_element(
      reasons.begin(), reasons.end(),
      [&](const CostReason& a, const CostReason& b) { return a.cost(counts) < b.cost(counts); });
}

std::string cost_text() {
  return format(
      "share of the cost, which is 1 for each instruction of a warp, {:.0f} for each pass over "
      "shared memory and of atomics, {:.0f} for each sector of global and local memory, in "
      "quarters of a cycle of a multiprocessor",
      kPass, kSector);
}

constexpr std::array<std::pair<const char*, const char*>, 10> kCountColumns{{
    {"instr.", "instructions that warps executed"},
    {"threads", "threads of a warp that did one, on average"},
    {"diverged", "branches at which lanes parted, of all"},
    {"global", "requests to global memory"},
    {"sect/req", "32-byte sectors for each of them"},
    {"ideal", "sectors that the different bytes would fill, of the actual ones"},
    {"shared", "requests to shared memory"},
    {"conflicts", "passes over the banks of shared memory beyond the ideal"},
    {"atomics", "threads with one address in an atomic request, on average"},
    {"local B", "bytes of local memory that threads asked for"},
}};

/// In the order of column_texts().
std::vector<LineColumn> all_columns() {
  std::vector<LineColumn> columns{{"cost", cost_text()}};
  for (const auto& [name, meaning] : kCountColumns) columns.push_back({name, meaning});
  return columns;
}

/// Of what the table does not show.
std::string note_about(const LineCounts& c) {
  if (c.uncounted == 0) return {};
  return format("{} {} memory in ways that no request counts: {} traffic is in no cost",
                counted(c.uncounted, "instruction"), c.uncounted == 1 ? "moves" : "move",
                c.uncounted == 1 ? "its" : "their");
}

/// "-" where there is nothing to tell.
std::string number(std::uint64_t value) { return value == 0 ? "-" : format("{}", value); }

std::vector<std::string> column_texts(const LineCounts& c, double share) {
  const std::uint64_t requests = global_requests(c);
  const std::uint64_t shared = shared_requests(c);
  return {
      c.instructions == 0 ? "-" : format("{:.1f}%", 100 * share),
      number(c.instructions),
      c.instructions == 0 ? "-" : format("{:.1f}", ratio(c.thread_instructions, c.instructions)),
      c.branches == 0 ? "-" : format("{}/{}", c.divergent_branches, c.branches),
      number(requests),
      requests == 0 ? "-" : format("{:.1f}", ratio(c.global_sectors, requests)),
      c.global_sectors == 0
          ? "-"
          : format("{:.0f}%", 100 * ratio(c.global_ideal_sectors, c.global_sectors)),
      number(shared),
      shared == 0 ? "-" : format("{}", c.shared_wavefronts - c.shared_ideal_wavefronts),
      c.atomics == 0 ? "-" : format("{:.1f}", ratio(c.atomic_passes, c.atomics)),
      number(c.local_bytes),
  };
}

/// Rows of those that cost most and are worth a word, the highest first.
std::vector<std::size_t> worst(std::span<const LineCounts> rows, std::uint64_t whole) {
  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return line_cost(rows[a]) > line_cost(rows[b]);
  });
  std::erase_if(order, [&](std::size_t i) { return line_cost(rows[i]) * kLeastShare < whole; });
  order.resize(std::min(order.size(), kMostAdvice));
  return order;
}

/// Takes the columns that have a value in no row.
void drop_empty_columns(LineTable& table) {
  for (std::size_t i = table.columns.size(); i-- > 0;) {
    const auto tells = [&](const std::vector<std::string>& row) { return row[i] != "-"; };
    if (std::any_of(table.rows.begin(), table.rows.end(), tells) || tells(table.total)) continue;
    const auto at = static_cast<std::ptrdiff_t>(i);
    table.columns.erase(table.columns.begin() + at);
    table.total.erase(table.total.begin() + at);
    for (std::vector<std::string>& row : table.rows) row.erase(row.begin() + at);
  }
}

}  // namespace

std::uint64_t line_cost(const LineCounts& counts) noexcept {
  double cost = 0;
  for (const CostReason& part : kParts) cost += part.cost(counts);
  return static_cast<std::uint64_t>(cost);
}

std::string line_advice(const LineCounts& counts) {
  if (counts.instructions == 0) return {};
  const CostReason& loss = largest(kLosses, counts);
  const bool matters = loss.cost(counts) >= kLeastLoss * count(line_cost(counts));
  return (matters ? loss : largest(kParts, counts)).advice(counts);
}

LineTable line_table(std::span<const LineCounts> rows, const LineCounts& total) {
  const std::uint64_t whole = std::max<std::uint64_t>(line_cost(total), 1);
  LineTable table;
  table.columns = all_columns();
  for (const LineCounts& counts : rows) {
    table.shares.push_back(ratio(line_cost(counts), whole));
    table.rows.push_back(column_texts(counts, table.shares.back()));
  }
  table.total = column_texts(total, 1);
  table.note = note_about(total);
  table.advice.resize(rows.size());
  for (const std::size_t i : worst(rows, whole)) table.advice[i] = line_advice(rows[i]);
  drop_empty_columns(table);
  return table;
}

}  // namespace kernwright::sim
