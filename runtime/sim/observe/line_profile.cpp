// The counts of lines: sums, JSON, and the table.
#include "sim/line_profile.h"

#include "base/format.h"
#include "sim/observe/source_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace kernwright::sim {
namespace {

constexpr LineCountField kFields[] = {
#define KW_FIELD(name) \
  { #name, &LineCounts::name }
    KW_FIELD(instructions),
    KW_FIELD(thread_instructions),
    KW_FIELD(predicated_off),
    KW_FIELD(branches),
    KW_FIELD(divergent_branches),
    KW_FIELD(global_loads),
    KW_FIELD(global_stores),
    KW_FIELD(global_bytes),
    KW_FIELD(global_sectors),
    KW_FIELD(global_ideal_sectors),
    KW_FIELD(global_lines),
    KW_FIELD(shared_loads),
    KW_FIELD(shared_stores),
    KW_FIELD(shared_wavefronts),
    KW_FIELD(shared_ideal_wavefronts),
    KW_FIELD(local_loads),
    KW_FIELD(local_stores),
    KW_FIELD(local_bytes),
    KW_FIELD(local_sectors),
    KW_FIELD(atomics),
    KW_FIELD(atomic_threads),
    KW_FIELD(atomic_passes),
    KW_FIELD(uncounted),
#undef KW_FIELD
};
static_assert(sizeof(LineCounts) == std::size(kFields) * sizeof(std::uint64_t));

using Json = nlohmann::ordered_json;

Json counts_json(const LineCounts& counts) {
  Json json;
  for (const LineCountField& field : kFields) json[field.name] = counts.*field.value;
  return json;
}

double ratio(std::uint64_t a, std::uint64_t b) {
  return static_cast<double>(a) / static_cast<double>(b);
}

/// "-" where there is nothing to tell.
std::string number(std::uint64_t value) { return value == 0 ? "-" : format("{}", value); }

constexpr LineColumn kColumns[] = {
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
};

std::string row(const std::vector<std::string>& values, const std::string& place) {
  std::string text;
  for (const std::string& value : values) text += format("{:>10}", value);
  return text + "  " + place + "\n";
}

std::string place_text(const LineRecord& record, SourceText& source) {
  if (record.line == 0) return format("{}: no line", record.kernel);
  return source.place(record.file, record.line, record.first_line, "  ");
}

}  // namespace

std::span<const LineCountField> line_count_fields() noexcept { return kFields; }

std::span<const LineColumn> line_columns() noexcept { return kColumns; }

std::vector<std::string> line_cells(const LineCounts& c) {
  const std::uint64_t requests = c.global_loads + c.global_stores;
  const std::uint64_t shared = c.shared_loads + c.shared_stores;
  return {
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

LineCounts& LineCounts::operator+=(const LineCounts& other) noexcept {
  for (const LineCountField& field : kFields) this->*field.value += other.*field.value;
  return *this;
}

LineCounts LineProfile::total() const noexcept {
  LineCounts sum;
  for (const LineRecord& record : lines) sum += record.counts;
  return sum;
}

std::string LineProfile::to_json() const {
  Json list = Json::array();
  for (const LineRecord& record : lines) {
    list.push_back({{"kernel", record.kernel},
                    {"file", record.file},
                    {"line", record.line},
                    {"first_line", record.first_line},
                    {"counts", counts_json(record.counts)}});
  }
  const Json json = {{"launches", launches}, {"lines", list}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string LineProfile::to_text(SourceText& source) const {
  if (launches.empty()) return "no launches\n";
  std::string text;
  for (const auto& [kernel, count] : launches)
    text += format("{}: {} launch{}\n", kernel, count, count == 1 ? "" : "es");
  std::vector<std::string> header;
  for (const LineColumn& column : kColumns) header.emplace_back(column.name);
  text += row(header, "line");
  std::vector<const LineRecord*> order;
  for (const LineRecord& record : lines) order.push_back(&record);
  std::stable_sort(order.begin(), order.end(), [](const LineRecord* a, const LineRecord* b) {
    return a->counts.instructions > b->counts.instructions;
  });
  for (const LineRecord* record : order)
    text += row(line_cells(record->counts), place_text(*record, source));
  const LineCounts sum = total();
  text += row(line_cells(sum), "total");
  if (sum.uncounted != 0)
    text += format("{} instructions move memory in ways that no request counts\n", sum.uncounted);
  return text;
}

}  // namespace kernwright::sim
