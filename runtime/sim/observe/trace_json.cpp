// A trace as JSON.
#include "base/format.h"
#include "sim/trace.h"

#include <nlohmann/json.hpp>

namespace kernwright::sim {
namespace {

using Json = nlohmann::ordered_json;

std::string bits_text(const TraceBits& bits) {
  return bits.high == 0 ? format("{:#x}", bits.low) : format("{:#x}{:016x}", bits.high, bits.low);
}

/// {"bits": "0x3f800000", "text": "1"}
Json value_json(const std::string& type, const TraceBits& bits) {
  return {{"bits", bits_text(bits)}, {"text", trace_value(type, bits)}};
}

/// An array of what `one` makes of each item.
template <typename T, typename F>
Json list_json(const std::vector<T>& items, F one) {
  Json list = Json::array();
  for (const T& item : items) list.push_back(one(item));
  return list;
}

Json write_json(const TraceWrite& write) {
  return {{"register", write.reg},
          {"type", write.type},
          {"before", write.before ? value_json(write.type, *write.before) : Json()},
          {"after", value_json(write.type, write.after)}};
}

Json access_json(const TraceAccess& access) {
  const auto value = [&](const TraceBits& bits) { return value_json(access.type, bits); };
  return {{"what", access.what},
          {"space", access.space},
          {"address", access.address},
          {"bytes", access.bytes},
          {"type", access.type},
          {"before", list_json(access.before, value)},
          {"after", list_json(access.after, value)}};
}

Json step_json(const TraceStep& step) {
  return {{"index", step.index},
          {"file", step.file},
          {"line", step.line},
          {"first_line", step.first_line},
          {"ptx_line", step.ptx_line},
          {"function", step.function},
          {"depth", step.depth},
          {"instruction", step.instruction},
          {"predicated_off", step.predicated_off},
          {"taken", step.taken ? Json(*step.taken) : Json()},
          {"returned", step.returned},
          {"complete", step.complete},
          {"writes", list_json(step.writes, write_json)},
          {"accesses", list_json(step.accesses, access_json)},
          {"printed", step.printed}};
}

}  // namespace

std::string Trace::to_json() const {
  const Json json = {{"kernel", kernel},
                     {"launch", request.launch},
                     {"launches", launches},
                     {"block", request.block},
                     {"thread", request.thread},
                     {"grid", grid},
                     {"block_shape", block_shape},
                     {"outside", outside},
                     {"skip", request.skip},
                     {"limit", request.limit},
                     {"total", total},
                     {"fault", fault ? Json(fault->to_string()) : Json()},
                     {"steps", list_json(steps, step_json)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace kernwright::sim
