// Verdicts as JSON.
#include "tune/judge/verdict.h"

#include <cmath>

#include "base/format.h"
#include "base/json_text.h"

namespace kernwright {
namespace {

std::string number(double value) { return std::isfinite(value) ? format("{}", value) : "null"; }

std::string number(const std::optional<double>& value) { return value ? number(*value) : "null"; }

template <typename List, typename ToText>
std::string list_json(const List& list, const ToText& to_text) {
  std::string text = "[";
  for (const auto& each : list) {
    if (text.size() > 1) text += ", ";
    text += to_text(each);
  }
  return text + "]";
}

/// Writes members of an object one after the other.
class ObjectJson {
 public:
  ObjectJson& raw(const char* name, const std::string& json) {
    text_ += format("{}\"{}\": {}", text_.empty() ? "" : ", ", name, json);
    return *this;
  }
  ObjectJson& text(const char* name, std::string_view value) {
    return raw(name, json_string(value));
  }
  template <typename Number>
  ObjectJson& whole(const char* name, Number value) {
    return raw(name, format("{}", value));
  }
  std::string done() const { return "{" + text_ + "}"; }

 private:
  std::string text_;
};

std::string to_json(const Diagnostic& diagnostic) {
  return ObjectJson()
      .text("severity", severity_name(diagnostic.severity))
      .text("message", diagnostic.message)
      .text("file", diagnostic.file)
      .whole("line", diagnostic.line)
      .whole("column", diagnostic.column)
      .text("caret", diagnostic.caret)
      .text("hint", diagnostic.hint)
      .done();
}

std::string to_json(const JudgeFinding& finding) {
  const auto place = [](const std::array<unsigned, 3>& at) {
    return format("[{}, {}, {}]", at[0], at[1], at[2]);
  };
  return ObjectJson()
      .text("kind", finding.kind)
      .text("message", finding.message)
      .text("hint", finding.hint)
      .text("file", finding.file)
      .whole("line", finding.line)
      .whole("other_line", finding.other_line)
      .text("opcode", finding.opcode)
      .raw("block", place(finding.block))
      .raw("thread", place(finding.thread))
      .text("allocation", finding.allocation)
      .text("details", finding.details)
      .whole("count", finding.count)
      .done();
}

std::string to_json(const Difference& difference) {
  return ObjectJson()
      .whole("index", difference.index)
      .text("place", difference.place)
      .text("got", difference.got)
      .text("expected", difference.expected)
      .whole("count", difference.count)
      .whole("elements", difference.elements)
      .raw("largest_error", number(difference.largest_error))
      .done();
}

std::string to_json(const CaseResult& result) {
  return ObjectJson()
      .whole("number", result.number)
      .whole("seed", result.seed)
      .raw("arguments", list_json(result.arguments, json_string))
      .text("device", result.device)
      .text("status", result.status)
      .text("message", result.message)
      .text("argument", result.argument)
      .raw("difference", result.difference ? to_json(*result.difference) : "null")
      .done();
}

std::string to_json(const std::optional<JudgeTiming>& timing) {
  if (!timing) return "null";
  return ObjectJson()
      .raw("is_counted", timing->is_counted ? "true" : "false")
      .text("unit", timing->unit)
      .raw("median", number(timing->median))
      .raw("interval",
           format("[{}, {}]", number(timing->interval.low), number(timing->interval.high)))
      .raw("samples", list_json(timing->samples, [](double value) { return number(value); }))
      .whole("case_number", timing->case_number)
      .done();
}

}  // namespace

const char* verdict_status_name(VerdictStatus status) noexcept {
  switch (status) {
    case VerdictStatus::accepted:
      return "accepted";
    case VerdictStatus::compile:
      return "compile";
    case VerdictStatus::finding:
      return "finding";
    case VerdictStatus::wrong:
      return "wrong";
    case VerdictStatus::timeout:
      return "timeout";
    case VerdictStatus::crash:
      return "crash";
    case VerdictStatus::impossible:
      return "impossible";
    case VerdictStatus::cheating:
      return "cheating";
  }
  return "accepted";
}

std::string Verdict::to_json() const {
  const auto json_of = [](const auto& each) { return kernwright::to_json(each); };
  return ObjectJson()
      .text("status", verdict_status_name(status))
      .text("reason", reason)
      .raw("diagnostics", list_json(diagnostics, json_of))
      .raw("findings", list_json(findings, json_of))
      .raw("cases", list_json(cases, json_of))
      .raw("timing", kernwright::to_json(timing))
      .raw("baseline", kernwright::to_json(baseline))
      .raw("speedup", number(speedup))
      .raw("floor", number(floor))
      .text("floor_reason", floor_reason)
      .whole("seed", seed)
      .text("device", device)
      .raw("compile_seconds", number(compile_seconds))
      .raw("check_seconds", number(check_seconds))
      .raw("time_seconds", number(time_seconds))
      .raw("seconds", number(seconds))
      .done();
}

}  // namespace kernwright
