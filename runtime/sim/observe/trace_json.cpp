// A trace as JSON.
#include "base/format.h"
#include "base/json_text.h"
#include "sim/trace.h"

namespace kernwright::sim {
namespace {

std::string triple_json(const std::array<unsigned, 3>& values) {
  return format("[{}, {}, {}]", values[0], values[1], values[2]);
}

std::string bits_json(const TraceBits& bits) {
  return bits.high == 0 ? format("\"{:#x}\"", bits.low)
                        : format("\"{:#x}{:016x}\"", bits.high, bits.low);
}

/// {"bits": "0x3f800000", "text": "1"}
std::string value_json(const std::string& type, const TraceBits& bits) {
  return format("{{\"bits\": {}, \"text\": {}}}", bits_json(bits),
                json_string(trace_value(type, bits)));
}

template <typename T, typename F>
std::string list_json(const std::vector<T>& items, F one) {
  std::string text;
  for (const T& item : items) text += (text.empty() ? "" : ", ") + one(item);
  return "[" + text + "]";
}

std::string write_json(const TraceWrite& write) {
  return format("{{\"register\": {}, \"type\": {}, \"before\": {}, \"after\": {}}}",
                json_string(write.reg), json_string(write.type),
                write.before ? value_json(write.type, *write.before) : "null",
                value_json(write.type, write.after));
}

std::string access_json(const TraceAccess& access) {
  const auto value = [&](const TraceBits& bits) { return value_json(access.type, bits); };
  return format(
      "{{\"what\": {}, \"space\": {}, \"address\": {}, \"bytes\": {}, \"type\": {}, \"before\": "
      "{}, \"after\": {}}}",
      json_string(access.what), json_string(access.space), access.address, access.bytes,
      json_string(access.type), list_json(access.before, value), list_json(access.after, value));
}

const char* boolean(bool value) { return value ? "true" : "false"; }

std::string step_json(const TraceStep& step) {
  return format(
      "{{\"index\": {}, \"file\": {}, \"line\": {}, \"first_line\": {}, \"ptx_line\": {}, "
      "\"function\": {}, \"depth\": {}, \"instruction\": {}, \"predicated_off\": {}, \"taken\": "
      "{}, \"returned\": {}, \"complete\": {}, \"writes\": {}, \"accesses\": {}, \"printed\": {}}}",
      step.index, json_string(step.file), step.line, step.first_line, step.ptx_line,
      json_string(step.function), step.depth, json_string(step.instruction),
      boolean(step.predicated_off), step.taken ? boolean(*step.taken) : "null",
      boolean(step.returned), boolean(step.complete), list_json(step.writes, write_json),
      list_json(step.accesses, access_json), json_string(step.printed));
}

}  // namespace

std::string Trace::to_json() const {
  std::string text = format(
      "{{\"kernel\": {}, \"launch\": {}, \"launches\": {}, \"block\": {}, \"thread\": {}, "
      "\"grid\": {}, \"block_shape\": {}, \"outside\": {}, \"skip\": {}, \"limit\": {}, \"total\": "
      "{}, \"fault\": {},\n\"steps\": [",
      json_string(kernel), request.launch, launches, triple_json(request.block),
      triple_json(request.thread), triple_json(grid), triple_json(block_shape), boolean(outside),
      request.skip, request.limit, total, fault ? json_string(fault->to_string()) : "null");
  for (std::size_t i = 0; i < steps.size(); ++i)
    text += (i == 0 ? "\n" : ",\n") + step_json(steps[i]);
  return text + "]}";
}

}  // namespace kernwright::sim
