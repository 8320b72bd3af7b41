// Findings as text and as JSON.
#include "base/format.h"
#include "base/json_text.h"
#include "sim/checks.h"

namespace kernwright::sim {
namespace {

std::string triple(const std::array<unsigned, 3>& values) {
  return format("[{}, {}, {}]", values[0], values[1], values[2]);
}

std::string other_json(const OtherAccess& other) {
  return format(
      "{{\"what\": {}, \"file\": {}, \"line\": {}, \"first_line\": {}, \"ptx_line\": {}, "
      "\"opcode\": {}, \"block\": {}, \"thread\": {}, \"value\": {}}}",
      json_string(other.what), json_string(other.file), other.line, other.first_line,
      other.ptx_line, json_string(other.opcode), other.thread_known ? triple(other.block) : "null",
      other.thread_known ? triple(other.thread) : "null", json_string(other.value));
}

std::string finding_json(const Finding& finding) {
  const Fault& fault = finding.fault;
  std::string text = format(
      "{{\"kind\": {}, \"message\": {}, \"hint\": {}, \"count\": {},\n   \"kernel\": {}, \"file\": "
      "{}, \"line\": {}, \"first_line\": {}, \"ptx_line\": {}, \"opcode\": {},\n   \"block\": {}, "
      "\"thread\": {}, \"what\": {}, \"space\": {}, \"address\": {}, \"size\": {}, \"value\": {},\n"
      "   \"allocation\": {}, \"details\": {}, \"other\": ",
      json_string(fault_kind_name(fault.kind)), json_string(fault.message),
      json_string(finding.hint), finding.count, json_string(fault.kernel), json_string(fault.file),
      fault.line, fault.first_line, fault.ptx_line, json_string(fault.opcode), triple(fault.block),
      triple(fault.thread), json_string(finding.what), json_string(finding.space), fault.address,
      fault.access_size, json_string(finding.value), json_string(fault.allocation),
      json_string(fault.further_lines()));
  return text + (finding.other ? other_json(*finding.other) : "null") + "}";
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
  std::string text = "[";
  for (const Finding& finding : findings) {
    text += (text.size() == 1 ? "\n  " : ",\n  ") + finding_json(finding);
  }
  return text + (findings.empty() ? "]\n" : "\n]\n");
}

}  // namespace kernwright::sim
