// Verdicts as JSON.
#include "tune/judge/verdict.h"

#include <nlohmann/json.hpp>

namespace kernwright {

using Json = nlohmann::ordered_json;

// The library of JSON finds these by their name, in arrays too.

static void to_json(Json& json, const Interval& i) { json = Json::array({i.low, i.high}); }

static void to_json(Json& json, const Diagnostic& d) {
  json = {{"severity", severity_name(d.severity)},
          {"message", d.message},
          {"file", d.file},
          {"line", d.line},
          {"column", d.column},
          {"caret", d.caret},
          {"hint", d.hint}};
}

static void to_json(Json& json, const JudgeFinding& f) {
  json = {{"kind", f.kind},       {"message", f.message},
          {"hint", f.hint},       {"file", f.file},
          {"line", f.line},       {"other_line", f.other_line},
          {"opcode", f.opcode},   {"block", f.block},
          {"thread", f.thread},   {"allocation", f.allocation},
          {"details", f.details}, {"count", f.count}};
}

static void to_json(Json& json, const Difference& d) {
  json = {{"index", d.index},
          {"place", d.place},
          {"got", d.got},
          {"expected", d.expected},
          {"count", d.count},
          {"elements", d.elements},
          {"largest_error", d.largest_error},
          {"not_finite", d.not_finite}};
}

static void to_json(Json& json, const JudgeTiming& t) {
  json = {{"is_counted", t.is_counted}, {"unit", t.unit},       {"median", t.median},
          {"interval", t.interval},     {"samples", t.samples}, {"case_number", t.case_number}};
}

/// null for nothing.
template <typename T>
static Json optional_json(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

static void to_json(Json& json, const CaseResult& r) {
  json = {{"number", r.number},       {"seed", r.seed},
          {"arguments", r.arguments}, {"device", r.device},
          {"status", r.status},       {"message", r.message},
          {"argument", r.argument},   {"difference", optional_json(r.difference)}};
}

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
  const Json json = {{"status", verdict_status_name(status)},
                     {"reason", reason},
                     {"warnings", warnings},
                     {"diagnostics", diagnostics},
                     {"findings", findings},
                     {"cases", cases},
                     {"timing", optional_json(timing)},
                     {"baseline", optional_json(baseline)},
                     {"speedup", optional_json(speedup)},
                     {"floor", optional_json(floor)},
                     {"floor_reason", floor_reason},
                     {"seed", seed},
                     {"device", device},
                     {"compile_seconds", compile_seconds},
                     {"check_seconds", check_seconds},
                     {"time_seconds", time_seconds},
                     {"seconds", seconds}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace kernwright
