// Verdicts as JSON.
#include "tune/judge/verdict.h"

#include <cmath>
#include <concepts>
#include <ranges>

#include "base/format.h"
#include "base/json_text.h"

namespace kernwright {
namespace {

std::string json_of(const std::string& value) { return json_string(value); }
std::string json_of(const char* value) { return json_string(value); }
std::string json_of(bool value) { return value ? "true" : "false"; }
std::string json_of(double value) { return std::isfinite(value) ? format("{}", value) : "null"; }
template <std::integral Number>
std::string json_of(Number value) {
  return format("{}", value);
}

std::string json_of(const Diagnostic& diagnostic);
std::string json_of(const JudgeFinding& finding);
std::string json_of(const Difference& difference);
std::string json_of(const CaseResult& result);
std::string json_of(const JudgeTiming& timing);
std::string json_of(const Interval& interval);

template <typename T>
std::string json_of(const std::optional<T>& value) {
  return value ? json_of(*value) : "null";
}

template <std::ranges::range List>
std::string json_of(const List& list) {
  std::string text = "[";
  for (const auto& each : list) {
    if (text.size() > 1) text += ", ";
    text += json_of(each);
  }
  return text + "]";
}

/// Members, one after the other: name, value, name, value, ...
template <typename... Rest>
void add_members(std::string& text, const char* name, const auto& value, const Rest&... rest) {
  text += format("{}\"{}\": {}", text.size() > 1 ? ", " : "", name, json_of(value));
  if constexpr (sizeof...(rest) > 0) add_members(text, rest...);
}

std::string object_json(const auto&... members) {
  std::string text = "{";
  add_members(text, members...);
  return text + "}";
}

std::string json_of(const Interval& interval) {
  return format("[{}, {}]", json_of(interval.low), json_of(interval.high));
}

std::string json_of(const Diagnostic& d) {
  return object_json("severity", severity_name(d.severity), "message", d.message, "file", d.file,
                     "line", d.line, "column", d.column, "caret", d.caret, "hint", d.hint);
}

std::string json_of(const JudgeFinding& f) {
  return object_json("kind", f.kind, "message", f.message, "hint", f.hint, "file", f.file, "line",
                     f.line, "other_line", f.other_line, "opcode", f.opcode, "block", f.block,
                     "thread", f.thread, "allocation", f.allocation, "details", f.details, "count",
                     f.count);
}

std::string json_of(const Difference& d) {
  return object_json("index", d.index, "place", d.place, "got", d.got, "expected", d.expected,
                     "count", d.count, "elements", d.elements, "largest_error", d.largest_error,
                     "not_finite", d.not_finite);
}

std::string json_of(const CaseResult& r) {
  return object_json("number", r.number, "seed", r.seed, "arguments", r.arguments, "device",
                     r.device, "status", r.status, "message", r.message, "argument", r.argument,
                     "difference", r.difference);
}

std::string json_of(const JudgeTiming& t) {
  return object_json("is_counted", t.is_counted, "unit", t.unit, "median", t.median, "interval",
                     t.interval, "samples", t.samples, "case_number", t.case_number);
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
  return object_json("status", verdict_status_name(status), "reason", reason, "diagnostics",
                     diagnostics, "findings", findings, "cases", cases, "timing", timing,
                     "baseline", baseline, "speedup", speedup, "floor", floor, "floor_reason",
                     floor_reason, "seed", seed, "device", device, "compile_seconds",
                     compile_seconds, "check_seconds", check_seconds, "time_seconds", time_seconds,
                     "seconds", seconds);
}

}  // namespace kernwright
