// The counts of lines: sums, JSON, and the table.
#include "sim/line_profile.h"

#include "base/format.h"
#include "base/readable_name.h"
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
    KW_FIELD(uncounted_bytes),
#undef KW_FIELD
};
static_assert(sizeof(LineCounts) == std::size(kFields) * sizeof(std::uint64_t));

using Json = nlohmann::ordered_json;

Json counts_json(const LineCounts& counts) {
  Json json;
  for (const LineCountField& field : kFields) json[field.name] = counts.*field.value;
  return json;
}

std::string row(const std::vector<std::string>& values, const std::string& place) {
  std::string text;
  for (const std::string& value : values) text += format("{:>10}", value);
  return text + "  " + place + "\n";
}

std::string place_text(const LineRecord& record, SourceText& source) {
  if (record.line == 0) return format("{}: no line", readable_name(record.kernel));
  return source.place(record.file, record.line, record.first_line, "  ");
}

}  // namespace

std::span<const LineCountField> line_count_fields() noexcept { return kFields; }

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
    text += format("{}: {} launch{}\n", readable_name(kernel), count, count == 1 ? "" : "es");
  std::vector<const LineRecord*> order;
  for (const LineRecord& record : lines) order.push_back(&record);
  std::stable_sort(order.begin(), order.end(), [](const LineRecord* a, const LineRecord* b) {
    return line_cost(a->counts) > line_cost(b->counts);
  });
  std::vector<LineCounts> counts;
  for (const LineRecord* record : order) counts.push_back(record->counts);
  const LineCounts sum = total();
  const LineTable table = line_table(counts, sum);
  std::vector<std::string> header;
  for (const LineColumn& column : table.columns) header.emplace_back(column.name);
  text += row(header, "line");
  std::string advice;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::string place = place_text(*order[i], source);
    text += row(table.rows[i], place);
    if (!table.advice[i].empty()) advice += format("{}\n  {}\n", place, table.advice[i]);
  }
  text += row(table.total, "total");
  if (!table.note.empty()) text += table.note + "\n";
  return text + advice;
}

}  // namespace kernwright::sim
