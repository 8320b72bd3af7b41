// Keys as members of rows, and the hashes in them.
#include "tune/store/store_key.h"

#include "base/errors.h"
#include "base/format.h"
#include "base/sha256.h"
#include "core/device.h"
#include "driver/driver_types.h"
#include "jit/cache/cache_key.h"
#include "jit/program.h"
#include "jit/source/include_closure.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

namespace kernwright {
namespace {

/// Hashes of 128 bits: short in rows, and nobody forges his own results.
constexpr std::size_t kHexDigits = 32;

std::string short_hash(std::string_view text) {
  return sha256(text).to_hex().substr(0, kHexDigits);
}

/// "length:text": two different lists never give the same text.
void add_field(std::string& to, std::string_view text) {
  to += format("{}:", text.size());
  to += text;
}

[[noreturn]] void refuse_member(const char* name, const char* wanted) {
  throw InvalidArgument(format("the member \"{}\" of a row is no {}", name, wanted));
}

std::string text_member(const Row& row, const char* name) {
  const auto found = row.find(name);
  if (found == row.end() || found->is_null()) return {};
  if (!found->is_string()) refuse_member(name, "text");
  return found->get<std::string>();
}

int int_member(const Row& row, const char* name) {
  const auto found = row.find(name);
  if (found == row.end() || found->is_null()) return 0;
  if (!found->is_number_integer()) refuse_member(name, "integer");
  const auto value = found->get<std::int64_t>();
  if (value < 0 || value > std::numeric_limits<int>::max()) refuse_member(name, "integer");
  return static_cast<int>(value);
}

const Row* object_member(const Row& row, const char* name) {
  const auto found = row.find(name);
  if (found == row.end() || found->is_null()) return nullptr;
  if (!found->is_object()) refuse_member(name, "object");
  return &*found;
}

}  // namespace

DeviceClass DeviceClass::from(const Device& device) {
  const ComputeCapability capability = device.compute_capability();
  return {device.name(), capability.major, capability.minor,
          device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)};
}

Value parse_value(const Row& json) {
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_float()) return json.get<double>();
  if (json.is_string()) return json.get<std::string>();
  const bool fits =
      !json.is_number_unsigned() ||
      json.get<std::uint64_t>() <= std::uint64_t{std::numeric_limits<std::int64_t>::max()};
  if (json.is_number_integer() && fits) return json.get<std::int64_t>();
  throw InvalidArgument(
      format("{} is no value of a row: it is a bool, an integer of 64 bits, a number or a text",
             json.dump(-1, ' ', true, Row::error_handler_t::replace).substr(0, 60)));
}

Row value_json(const Value& value) {
  return std::visit([](const auto& held) { return Row(held); }, value);
}

std::string problem_bucket(const Value& value) {
  const auto* integer = std::get_if<std::int64_t>(&value);
  if (integer == nullptr) return value_text(value);
  const bool is_negative = *integer < 0;
  const auto magnitude =
      is_negative ? -static_cast<std::uint64_t>(*integer) : static_cast<std::uint64_t>(*integer);
  if (magnitude == 0) return "0-";
  return format("{}{}", is_negative ? "-" : "", std::bit_width(magnitude) - 1);
}

Row StoreKey::to_row() const {
  Row values = Row::object();
  Row buckets = Row::object();
  for (const auto& [name, value] : problem) {
    values[name] = value_json(value);
    buckets[name] = problem_bucket(value);
  }
  return {{"kernel", kernel},
          {"source", source},
          {"space", space},
          {"device",
           {{"name", device.name},
            {"major", device.major},
            {"minor", device.minor},
            {"sm_count", device.sm_count}}},
          {"nvrtc", nvrtc},
          {"driver", driver},
          {"policy", policy},
          {"objective", objective},
          {"problem", std::move(values)},
          {"bucket", std::move(buckets)}};
}

StoreKey StoreKey::from_row(const Row& row) {
  StoreKey key;
  key.kernel = text_member(row, "kernel");
  key.source = text_member(row, "source");
  key.text = text_member(row, "source_text");
  const auto space = row.find("space");
  // A session row has the whole space.
  key.space = space != row.end() && space->is_object() ? text_member(*space, "hash")
                                                       : text_member(row, "space");
  key.nvrtc = text_member(row, "nvrtc");
  key.driver = int_member(row, "driver");
  key.policy = text_member(row, "policy");
  key.objective = text_member(row, "objective");
  if (key.objective.empty()) key.objective = "time";
  if (const Row* device = object_member(row, "device")) {
    key.device = {text_member(*device, "name"), int_member(*device, "major"),
                  int_member(*device, "minor"), int_member(*device, "sm_count")};
    if (key.driver == 0) key.driver = int_member(*device, "driver");
  }
  if (const Row* problem = object_member(row, "problem")) {
    for (const auto& [name, value] : problem->items())
      key.problem.emplace(name, parse_value(value));
  }
  return key;
}

namespace {

std::string code_hash(const Program& program, ProgramOptions options,
                      std::span<const std::string> parameters, std::vector<std::string> headers) {
  for (const std::string& name : parameters) options.defines.erase(name);
  std::string text;
  add_field(text, request_fields(program.source(), options));
  add_field(text, options.arch);
  std::sort(headers.begin(), headers.end());  // their folders may be others elsewhere
  for (const std::string& header : headers) add_field(text, header);
  return short_hash(text);
}

}  // namespace

std::string source_hash(const Program& program, std::span<const std::string> parameters) {
  if (const auto& code = program.loaded_code()) return short_hash(code->code);
  const IncludeClosure included = include_closure(program.source(), program.options());
  if (!included.is_complete) return {};
  std::vector<std::string> headers;
  for (const IncludedFile& file : included.files) headers.push_back(file.hash.to_hex());
  return code_hash(program, program.options(), parameters, std::move(headers));
}

std::string text_hash(const Program& program, std::span<const std::string> parameters) {
  if (const auto& code = program.loaded_code()) return short_hash(code->code);
  return code_hash(program, program.options(), parameters, {});
}

std::string space_hash(const Space& space) {
  std::string text;
  for (const TuningParameter& parameter : space.parameters()) {
    add_field(text, parameter.name);
    add_field(text, format("{}", parameter.values.size()));
    for (const Value& value : parameter.values) add_field(text, value_text(value));
  }
  for (const Restriction& restriction : space.restrictions()) {
    add_field(text, restriction.expression ? restriction.expression->text() : restriction.label);
    if (!restriction.predicate) continue;
    for (const std::string& name : restriction.predicate->parameters) add_field(text, name);
  }
  if (space.is_listed()) {
    const ConfigurationSet& listed = space.configurations();
    for (std::uint64_t i = 0; i < listed.size(); ++i)
      for (const std::uint32_t choice : listed.at(i)) text += format("{},", choice);
  }
  return short_hash(text);
}

}  // namespace kernwright
