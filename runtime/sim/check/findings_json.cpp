// Findings as text and as JSON.
#include "base/format.h"
#include "sim/checks.h"

namespace kernwright::sim {
namespace {

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      result += format("\\u{:04x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    } else {
      result += c;
    }
  }
  return result + '"';
}

std::string triple(const std::array<unsigned, 3>& values) {
  return format("[{}, {}, {}]", values[0], values[1], values[2]);
}

std::string other_json(const OtherAccess& other) {
  return format(
      "{{\"what\": {}, \"file\": {}, \"line\": {}, \"ptx_line\": {}, \"opcode\": {}, \"block\": "
      "{}, \"thread\": {}, \"value\": {}}}",
      quoted(other.what), quoted(other.file), other.line, other.ptx_line, quoted(other.opcode),
      other.thread_known ? triple(other.block) : "null",
      other.thread_known ? triple(other.thread) : "null", quoted(other.value));
}

std::string finding_json(const Finding& finding) {
  const FaultReport& fault = finding.fault;
  std::string text = format(
      "{{\"kind\": {}, \"message\": {}, \"hint\": {}, \"count\": {},\n   \"kernel\": {}, \"file\": "
      "{}, \"line\": {}, \"first_line\": {}, \"ptx_line\": {}, \"opcode\": {},\n   \"block\": {}, "
      "\"thread\": {}, \"what\": {}, \"space\": {}, \"address\": {}, \"size\": {}, \"value\": {},\n"
      "   \"allocation\": {}, \"details\": {}, \"other\": ",
      quoted(fault_kind_name(fault.kind)), quoted(fault.message), quoted(finding.hint),
      finding.count, quoted(fault.kernel), quoted(fault.file), fault.line, fault.first_line,
      fault.ptx_line, quoted(fault.opcode), triple(fault.block), triple(fault.thread),
      quoted(finding.what), quoted(finding.space), fault.address, fault.access_size,
      quoted(finding.value), quoted(fault.allocation), quoted(fault.details));
  return text + (finding.other ? other_json(*finding.other) : "null") + "}";
}

}  // namespace

std::string findings_text(std::span<const Finding> findings) {
  if (findings.empty()) return "no findings\n";
  std::string text;
  for (const Finding& finding : findings) text += finding.to_string() + "\n";
  return text + format("{} finding{}\n", findings.size(), findings.size() == 1 ? "" : "s");
}

std::string findings_json(std::span<const Finding> findings) {
  std::string text = "[";
  for (const Finding& finding : findings) {
    text += (text.size() == 1 ? "\n  " : ",\n  ") + finding_json(finding);
  }
  return text + (findings.empty() ? "]\n" : "\n]\n");
}

}  // namespace kernwright::sim
