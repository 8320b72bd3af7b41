// Findings as text and as JSON.
#include "base/format.h"
#include "sim/checks.h"

#include <nlohmann/json.hpp>

namespace kernwright::sim {
namespace {

using Json = nlohmann::ordered_json;

Json other_json(const OtherAccess& other) {
  return {{"what", other.what},
          {"file", other.file},
          {"line", other.line},
          {"first_line", other.first_line},
          {"ptx_line", other.ptx_line},
          {"opcode", other.opcode},
          {"block", other.thread_known ? Json(other.block) : Json()},
          {"thread", other.thread_known ? Json(other.thread) : Json()},
          {"value", other.value}};
}

Json finding_json(const Finding& finding) {
  const Fault& fault = finding.fault;
  return {{"kind", fault_kind_name(fault.kind)},
          {"message", fault.message},
          {"hint", finding.hint},
          {"count", finding.count},
          {"kernel", fault.kernel},
          {"file", fault.file},
          {"line", fault.line},
          {"first_line", fault.first_line},
          {"ptx_line", fault.ptx_line},
          {"opcode", fault.opcode},
          {"block", fault.block},
          {"thread", fault.thread},
          {"what", finding.what},
          {"space", finding.space},
          {"address", fault.address},
          {"size", fault.access_size},
          {"value", finding.value},
          {"allocation", fault.allocation},
          {"details", fault.further_lines()},
          {"other", finding.other ? other_json(*finding.other) : Json()}};
}

}  // namespace

std::string findings_text(std::span<const Finding> findings, std::uint64_t total) {
  std::uint64_t listed = 0;
  std::string text;
  for (const Finding& finding : findings) {
    text += finding.to_string() + "\n";
    listed += finding.count;
  }
  if (findings.empty() && total == 0) return "no findings\n";
  text += format("{} finding{}", findings.size(), findings.size() == 1 ? "" : "s");
  if (total > listed) {
    text += format(
        ", and {} more times something was found at other places, beyond the limit of "
        "the list: raise it to see them",
        total - listed);
  }
  return text + "\n";
}

std::string findings_json(std::span<const Finding> findings) {
  Json list = Json::array();
  for (const Finding& finding : findings) list.push_back(finding_json(finding));
  return list.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace kernwright::sim
