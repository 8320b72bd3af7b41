// A trace as a listing: each source line once, with its instructions' changes below.
#include "base/format.h"
#include "sim/observe/source_text.h"
#include "sim/trace.h"

#include <algorithm>

namespace kernwright::sim {
namespace {

std::string triple(const std::array<unsigned, 3>& values) {
  return format("({}, {}, {})", values[0], values[1], values[2]);
}

std::string values_text(const std::string& type, const std::vector<TraceBits>& values) {
  if (values.size() == 1) return trace_value(type, values.front());
  std::string text;
  for (const TraceBits& value : values)
    text += (text.empty() ? "" : ", ") + trace_value(type, value);
  return "{" + text + "}";
}

std::string access_text(const TraceAccess& access) {
  std::string text = format("{} {:#x}", access.space, access.address);
  if (access.before.empty()) return text + " (cannot be read)";
  text += ": " + values_text(access.type, access.before);
  if (!access.after.empty()) text += " -> " + values_text(access.type, access.after);
  return text;
}

std::string outcome(const TraceStep& step) {
  std::vector<std::string> parts;
  if (step.predicated_off) parts.emplace_back("(predicated off)");
  if (step.taken) parts.emplace_back(*step.taken ? "taken" : "not taken");
  for (const TraceWrite& write : step.writes) {
    std::string text = format("{} = {}", write.reg, trace_value(write.type, write.after));
    if (write.before && *write.before != write.after)
      text += format(" (was {})", trace_value(write.type, *write.before));
    parts.push_back(std::move(text));
  }
  for (const TraceAccess& access : step.accesses) parts.push_back(access_text(access));
  if (!step.complete) parts.emplace_back("<- the launch stopped here");
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : "; ") + part;
  return text;
}

/// "printed: ..." for each line.
std::string printed_text(std::string_view printed) {
  std::string text;
  while (!printed.empty()) {
    const std::size_t end = printed.find('\n');
    text += format("           printed: {}\n", printed.substr(0, end));
    if (end == std::string_view::npos) break;
    printed.remove_prefix(end + 1);
  }
  return text;
}

std::string place_text(const TraceStep& step, SourceText& source) {
  if (step.line == 0) return format("{}, PTX line {}", step.function, step.ptx_line);
  return source.place(step.file, step.line, step.first_line, "    ");
}

std::string header(const Trace& trace) {
  std::string text = format("trace of {}, launch {}, block {}, thread {}: {} step{}\n",
                            trace.kernel.empty() ? "a kernel" : trace.kernel, trace.request.launch,
                            triple(trace.request.block), triple(trace.request.thread), trace.total,
                            trace.total == 1 ? "" : "s");
  if (trace.outside) {
    text += format("the launch has a grid of {} blocks of {} threads: nothing was traced\n",
                   triple(trace.grid), triple(trace.block_shape));
  } else if (trace.kernel.empty()) {
    text += format("the kernel was launched {} time{}: nothing was traced\n", trace.launches,
                   trace.launches == 1 ? "" : "s");
  }
  return text;
}

}  // namespace

std::string Trace::to_text(SourceText& source) const {
  std::string text = header(*this);
  const std::uint64_t passed = std::min(request.skip, total);
  if (passed != 0) text += format("... {} steps before these were skipped\n", passed);
  const TraceStep* last = nullptr;
  for (const TraceStep& step : steps) {
    const bool same = last != nullptr && last->file == step.file && last->line == step.line &&
                      last->first_line == step.first_line &&
                      (step.line != 0 || last->function == step.function);
    if (!same) text += place_text(step, source) + "\n";
    last = &step;
    const std::string what = outcome(step);
    const std::string instruction =
        step.returned ? "(back from) " + step.instruction : step.instruction;
    text += what.empty() ? format("{:8}  {}\n", step.index, instruction)
                         : format("{:8}  {:<44}  {}\n", step.index, instruction, what);
    text += printed_text(step.printed);
  }
  const std::uint64_t left = total - passed - steps.size();
  if (left != 0) {
    text += format("... {} more step{} left out: the limit is {} (limit=, skip=)\n", left,
                   left == 1 ? " was" : "s were", request.limit);
  }
  if (fault) {
    text += "the launch was stopped: " + fault->to_string();
    if (!text.ends_with('\n')) text += '\n';
  }
  return text;
}

std::string Trace::to_text() const {
  SourceText source;
  return to_text(source);
}

}  // namespace kernwright::sim
